// Content hashes: FNV-1a of 64 bits as 16 hexadecimal digits. They show whether something changed; they are no defence
// against anyone who wants two things to look equal.
#pragma once
#include "experiment/experiment.hpp"

#include <string>
#include <utility>
#include <vector>

namespace assay::host::experiment {

// The hash of all that decides what the case measures: the workload, its parameters, the settings whose row says so
// (Setting::identity), and `identity` (hashes of files, device name, library versions). It does not depend on any
// order, nor on index and axes. `run.ranks` counts as the case has it, "auto" as 1: where a job decides how many there
// are, the caller has to put its number into the case or into `identity`. The hash is the same on every machine and in
// every build; a test holds one literal.
std::string case_hash(const Case& c, const std::string& workload_id,
                      const std::vector<std::pair<std::string, std::string>>& identity);

}  // namespace assay::host::experiment
