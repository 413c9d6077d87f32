// A note where a figure is that of code without optimisation.
#pragma once
#include <string>

#include "run/plan.hpp"
#include "run/target.hpp"

namespace assay::host::run {

// By the text that a plugin, a device backend and assay give of their build.
bool is_unoptimised(const std::string& build);

// "not optimised: plugin decoder (GNU 12.2.0 unoptimised); ..." with the remedy; "" where all are optimised.
std::string note_on_builds(const RunTarget& target, const record::Device& device, const std::string& host_build);
// The same of this assay.
std::string note_on_builds(const RunTarget& target, const record::Device& device);

}  // namespace assay::host::run
