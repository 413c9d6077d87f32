// Brings the records of a batch's shards, or of several runs of one experiment, into one run folder.
#pragma once
#include "batch/submission.hpp"
#include "experiment/experiment.hpp"
#include "record/case_record.hpp"
#include "results/reader.hpp"

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace assay::host::batch {

struct Collected {
  std::int64_t records = 0;          // in the run's cases.jsonl afterwards
  std::int64_t added = 0;            // that were not there before
  results::CasesFile cases;          // what the file holds afterwards, read already
  std::set<std::int64_t> submitted;  // of a batch: the cases that its shards have
  std::vector<std::string> notes;
};

// Writes the run's cases.jsonl, environments/ and environment.json anew, with the newest record of a case as its last.
// Records that are there already and come from no shard stay (`--resume` made them). Can be called at any time, while
// jobs write, and again. Throws StorageError.
Collected collect_batch(const std::filesystem::path& run, const Submission& submission);

// Throws StorageError when the runs were made with different builds of their plugin.
void check_parts(const std::vector<std::filesystem::path>& folders);

// Adds the records of `from` to `into`, oldest first, each once. Throws StorageError.
Collected merge_runs(const std::filesystem::path& into, const std::vector<std::filesystem::path>& from);

// The experiment with what the records say of parameters that a device has given a value ("auto" is "bf16" there), so
// that they are known again as records of its cases.
experiment::Experiment as_recorded(experiment::Experiment experiment, const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::batch
