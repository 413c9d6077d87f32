// What was submitted of a run: arrays of shards, and the jobs that they became. It lies in the run's folder:
//
//   <run>/batch/submission.json       every array that was ever to be submitted, in order
//   <run>/batch/array-0.sbatch        the script of one
//   <run>/batch/array-0.job           its job, once sbatch has answered
//   <run>/batch/shards/0-0003/        array 0, task 3 (shard/shard_plan.hpp)
//   <run>/batch/end-0.sbatch          what runs after the arrays of round 0, where the site has something to run
//   <run>/batch/end-0.job             its job
//   <run>/batch/lock                  see SubmissionLock
//   <run>/batch/log/                  what the batch scripts print
#pragma once
#include "batch/packing.hpp"
#include "batch/site_settings.hpp"
#include "batch/slurm_answers.hpp"
#include "common/fd.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::batch {

// In the place of the number of an array's job: it has run, and Slurm's answer to sbatch was lost.
inline constexpr const char* job_gone = "gone";

struct SubmittedArray {
  std::int64_t number = 0;
  std::int64_t round = 0;  // 0: the first submission; 1: the first --resubmit
  Shape shape;
  std::int64_t tasks = 0;
  double limit_s = 0;  // of one job
  bool is_canary = false;
  std::string id;  // unique: the comment of its jobs, by which they are found when sbatch's answer was lost
  std::optional<std::string> job;  // of the array, once it is known; job_gone where it has ended unseen

  std::string cluster;  // that has the job; "": the one of the machine that submits
  // By its number or its comment: sbatch's answer may have been lost, a site may change comments, and an array may have
  // been taken twice.
  bool has(const QueuedJob& queued) const;

  std::filesystem::path shard_folder(const std::filesystem::path& run, std::int64_t task) const;
  std::filesystem::path script_file(const std::filesystem::path& run) const;
};

struct Submission {
  std::string experiment_file;  // as the user has it
  std::string experiment_hash;  // of the run's experiment.toml
  std::string plugin_file, plugin_hash;
  std::string site;   // the file it was submitted with
  SiteTarget target;  // of the site
  double submitted_s = 0;
  std::vector<std::int64_t> users;   // whose jobs its arrays are, by user id
  std::int64_t attempts = 5;         // starts of one shard
  std::int64_t array_parallel = 16;  // shards of one array at once
  std::vector<SubmittedArray> arrays;
};

std::filesystem::path batch_folder(const std::filesystem::path& run);
bool has_submission(const std::filesystem::path& run);
// Throw StorageError.
Submission read_submission(const std::filesystem::path& run);
void write_submission(const std::filesystem::path& run, const Submission& submission);
// Keeps the job, in the array and on the disk.
void set_job(const std::filesystem::path& run, SubmittedArray& array, const SubmittedJob& job);
// That `assay cancel` has ended the array's jobs: <run>/batch/cancelled/NUMBER.
void mark_cancelled(const std::filesystem::path& run, const SubmittedArray& array);
bool is_cancelled(const std::filesystem::path& run, const SubmittedArray& array);

// Held while a submission is changed and queued, so that no two processes queue the same array. A program that is
// started meanwhile inherits it: an sbatch that outlives a killed `assay submit` holds it, too, until it has answered.
class SubmissionLock {
 public:
  // Waits a while for another one. Throws StorageError when that goes on.
  explicit SubmissionLock(const std::filesystem::path& run);

 private:
  Fd fd_;
};

// "a1b2c3d4e5f60718": 64 random bits.
std::string new_id();
std::string comment_of(const std::string& id);  // "assay:a1b2..."

}  // namespace assay::host::batch
