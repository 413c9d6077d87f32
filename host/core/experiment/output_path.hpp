// The names of files that a workload writes. They stay in the run folder, and are never the host's files.
#pragma once
#include "experiment/experiment.hpp"

#include <optional>
#include <string>
#include <utility>

namespace assay::host::experiment {

// What is wrong with a name, as a part of a sentence ("is an absolute path"); nothing when a file may have it.
std::optional<std::string> problem_of_output(const std::string& name);

// Two output parameters of the case that name the same file, or a file and a folder above it; the later one of the
// workload's table first.
std::optional<std::pair<std::string, std::string>> outputs_in_conflict(const Case& c,
                                                                       const plugin::WorkloadSchema& schema);

// "dumps/x.safetensors" and "case-0007" -> "dumps/x.case-0007.safetensors".
std::string own_output_name(const std::string& name, const std::string& stem);

}  // namespace assay::host::experiment
