// The environments of a run folder: environments/ID.json for each in which something was measured, and
// environment.json, the newest one.
#pragma once
#include "record/environment.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::results {

using Environments = std::map<std::string, record::Environment>;  // by id

// Writes what was captured at an invocation as environments/ID.json, beside earlier invocations of the same
// environment, and as environment.json. Returns the id. Where the run has an environment.json of before, and nothing by
// id, that one is kept for the records that name none. For whoever holds the run's lock. Throws StorageError.
std::string add_invocation(const std::filesystem::path& run, const std::string& captured);

// Adds those of `from` to those of `into`, each invocation once. A file that is not ours is left out and named in
// `notes`. Throws StorageError.
void merge_environments(const std::filesystem::path& into, const std::vector<std::filesystem::path>& from,
                        std::vector<std::string>& notes);

// Of one file. Empty where it cannot be understood, which `warnings` then has.
std::optional<record::Environment> read_environment(const std::filesystem::path& file,
                                                    std::vector<std::string>& warnings);
// Empty for runs older than environments. A file that cannot be understood is left out and named in `warnings`.
Environments read_environments(const std::filesystem::path& run, std::vector<std::string>& warnings);

}  // namespace assay::host::results
