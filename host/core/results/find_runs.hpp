// From what a user gives to the runs that it names.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "common/usage_error.hpp"

namespace assay::host::results {

// What was given is no run. The text names it and the remedy.
class NoRunError : public UsageError {
 public:
  using UsageError::UsageError;
};

// What cannot be looked at is not there, and no folder.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// Whether the run's cases come from shards, by `assay collect`.
bool is_batch(const std::filesystem::path& run);

// "results/x/...: no case has finished there", and of a batch how its cases come there.
std::string text_of_no_records(const std::filesystem::path& run);

// Run folders below a folder, however deep, and summaries where no run lies beside them; sorted. Links are not
// followed. None where the folder is itself a run.
std::vector<std::filesystem::path> runs_below(const std::filesystem::path& folder);

// `given` is a run folder, a cases.jsonl, a summary (bench_*.json), or a folder with several of these below it. Throws
// NoRunError.
std::vector<std::filesystem::path> runs_of(const std::string& given);

// What is given but for links to what is given as well: a shell's pattern names `latest` beside the run that it points
// at. `warnings` names each.
std::vector<std::string> without_links_to_others(const std::vector<std::string>& given,
                                                 std::vector<std::string>& warnings);

}  // namespace assay::host::results
