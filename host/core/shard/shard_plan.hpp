// A shard's task: some cases of one experiment, all of one shape.
//
//   <shard>/shard.json             written once, when the batch is submitted
//   <shard>/attempts/0001/         one attempt of a job at it (attempt.hpp)
//   <shard>/verdict-<job>-<n>      how that job's n-th start ended, in a word: for the batch script
//   <shard>/stop-<job>-<n>         made by the batch script: finish the case at hand, then stop
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::shard {

// A check that each node has to pass before a batch's first case there.
struct HealthRule {
  std::string experiment;  // its file; "": there is no check
  std::optional<double> tflop_per_s_min, gbytes_per_s_min;
  std::int64_t timeout_s = 600;
};

// What the site file says that a node has to be like. Shards of older versions of assay have none of it.
struct SitePromise {
  bool has_gpus = false;                 // [run] device = "auto" is a GPU
  std::string batch_id;                  // ASSAY_BATCH of every process of the job
  std::vector<std::string> environment;  // "NAME" that is set there, or "NAME=value"
  std::string cluster = {};              // of several that one Slurm knows; "": the one of the machine
  HealthRule health = {};
  std::string kind = "slurm";     // of the site: the table of its file
  std::string program_hash = {};  // SHA-256 of assay, where a container has it; "": any
};

struct ShardPlan {
  std::vector<std::int64_t> cases;              // by index in the experiment, in the order in which they run
  std::vector<double> budgets_s;                // of each of them
  std::vector<std::int64_t> unfinished_before;  // how often each has taken its job with it in an earlier shard
  std::string experiment_file;                  // as the user has it: what relative paths in it refer to
  std::string experiment_hash;                  // of the run's experiment.toml
  std::string plugin_file;
  std::string plugin_hash;
  SitePromise promised;
  bool is_canary = false;  // its case has to be ok before anything else of the batch starts

  // 0 where the shard has no such case.
  double budget_s_of(std::int64_t case_index) const;
  std::int64_t unfinished_before_of(std::int64_t case_index) const;
};

// Whoever has written them all calls flush_shard_plan() for each: that is far quicker than waiting for each in turn.
// Throw StorageError.
void write_shard_plan(const std::filesystem::path& shard_folder, const ShardPlan& plan);
void flush_shard_plan(const std::filesystem::path& shard_folder);
// Throws StorageError, also when the file says something else.
ShardPlan read_shard_plan(const std::filesystem::path& shard_folder);

// Cases that a later submission has taken over: whoever still works at this shard leaves them alone, even a job that
// was thought to be gone. Throw StorageError.
void mark_moved(const std::filesystem::path& shard_folder, const std::vector<std::int64_t>& cases);
std::set<std::int64_t> moved_cases(const std::filesystem::path& shard_folder);

// One start of one job: distinguishes its files from another's.
struct JobStart {
  std::string job;           // "" without a scheduler
  std::int64_t restart = 0;  // how often the scheduler has started it before
  std::string cluster = {};  // of several that the scheduler knows; "": the one of the machine
  std::string kind = {};  // of the site: "slurm", ...; "" without a job, and of older versions, which knew Slurm alone
};
std::filesystem::path verdict_file(const std::filesystem::path& shard_folder, const JobStart& start);
std::filesystem::path stop_file(const std::filesystem::path& shard_folder, const JobStart& start);

}  // namespace assay::host::shard
