// From an experiment and a site to jobs in its queue. A submission can be cut off anywhere and gone on with: what is to
// be submitted is on the disk before the scheduler hears of it, and a job whose number was lost is found by its
// comment.
#pragma once
#include "batch/budgets.hpp"
#include "batch/packing.hpp"
#include "batch/scheduler.hpp"
#include "batch/status.hpp"
#include "batch/submission.hpp"
#include "common/usage_error.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::batch {

// Why a submission is refused before anything is written: too long a case, too many node-hours.
class SubmitError : public UsageError {
 public:
  using UsageError::UsageError;
};

struct BatchPlan {
  std::vector<PackedArray> arrays;
  double node_hours = 0;                  // by the budgets; cases above theirs and jobs that start again cost more
  std::int64_t cases_without_budget = 0;  // that have the site's
};

// `only`: indices of the cases to submit, or none for all. `unfinished_before`: by index. Throws SubmitError that names
// a case whose budget no job can hold.
BatchPlan plan_batch(const experiment::Experiment& experiment, const Site& site, const std::vector<Budget>& budgets,
                     std::int64_t array_size_max, const std::vector<std::int64_t>* only = nullptr,
                     const std::map<std::int64_t, std::int64_t>& unfinished_before = {}, bool with_canary = true);

// The time limit of each of its jobs: Slurm counts in minutes, so it is rounded up, but never above what the site
// allows.
double job_limit_s(const PackedArray& array, const Site& site);

// Adds the plan's arrays to the submission, with ids, and writes folders and scripts of their shards. Nothing is
// queued.
void write_round(const std::filesystem::path& run, Submission& submission, const BatchPlan& plan, const Site& site,
                 const std::filesystem::path& assay, const std::string& run_name);

// Why a batch cannot go on with this site, with the remedy: its jobs are elsewhere. Nothing where it can.
std::optional<std::string> why_another_site(const Site& site, const Submission& submission);

// Why none of a batch's hosts takes its cases, with the remedy: each failed the health check. Nothing where one does,
// and for sites whose scheduler chooses the nodes.
std::optional<std::string> why_no_host(const std::filesystem::path& run, const Submission& submission);

// Queues every array of the submission that has no job yet: looks for it by its comment first. The arrays of a round
// wait for its canary. `said` hears a line for each array. Throws SchedulerError; arrays queued before stay queued.
void queue_arrays(const std::filesystem::path& run, Submission& submission, const Scheduler& scheduler,
                  const std::function<void(const std::string&)>& said);

}  // namespace assay::host::batch
