// Content hashes: FNV-1a of 64 bits as 16 hexadecimal digits. They tell equal from changed; they are no defence against
// anyone who wants two things to look equal.
#pragma once
#include "experiment/experiment.hpp"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace assay::host {

// Of all that decides what the case measures: the workload, its parameters, the settings of measuring and running, and
// `identity` (plugin file hash, device name, library versions). Independent of any order, and of index, axes, allow,
// deadlines and isolate. `run.ranks` counts as the case has it, "auto" as 1: where a job decides how many there are,
// its number has to be put into the case, or into `identity`, by the caller. The same on every machine and in every
// build; a test holds one literal.
std::string case_hash(const Case& c, const std::string& workload_id,
                      const std::vector<std::pair<std::string, std::string>>& identity);

// Of a file's bytes. Throws std::system_error when it cannot be read.
std::string hash_file(const std::filesystem::path& path);

}  // namespace assay::host
