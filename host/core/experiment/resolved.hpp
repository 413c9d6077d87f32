// The resolved experiment file: --set applied, every default written out; it parses to the same cases.
#pragma once
#include "experiment/experiment.hpp"
#include "experiment/sweep.hpp"

#include <string>

namespace assay::host::experiment {

// In quotes, on one line, whatever characters it has.
std::string toml_text(const std::string& text);

std::string resolved_toml(const Experiment& experiment, const Case& base, const SweepPlan& plan,
                          const plugin::WorkloadSchema& schema);

}  // namespace assay::host::experiment
