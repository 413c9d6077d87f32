// The files that a case writes beside its record: those that parameters of its workload name.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "worker/case_spec.hpp"

namespace assay::host::run {

// What stands in the way of a file that one of these ranks is to write, with the remedy; nothing when nothing does.
std::optional<std::string> obstacle_to_outputs(const std::vector<worker::CaseSpec>& ranks);

// Takes away what the workers of these ranks have left half written, as NAME.partial: one that was killed could not. To
// be called when they have ended.
void remove_half_written(const std::vector<worker::CaseSpec>& ranks) noexcept;

}  // namespace assay::host::run
