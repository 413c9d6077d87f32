// How a batch stands, from its files, explained by the queue.
#pragma once
#include "batch/slurm_answers.hpp"
#include "batch/submission.hpp"
#include "shard/node_health.hpp"
#include "shard/node_ready.hpp"
#include "shard/shard_state.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::batch {

enum class CaseState {
  unsubmitted,  // no job of its array is known, nor in the queue: `assay submit RUN` goes on
  queued,
  running,
  finished,     // it has a record
  quarantined,  // it has taken its job with it twice
  lost,         // no record, and its job is gone
  cancelled,    // no record, and its jobs were ended by `assay cancel`
  blocked,      // the canary is not ok
  unknown,      // no record, and the scheduler does not answer
};
const char* name_of(CaseState state);

struct CaseStatus {
  // It has a record that `--resubmit failed` is about.
  bool has_failed() const { return state == CaseState::finished && status != "ok" && status != "unsupported"; }

  std::int64_t index = 0;
  CaseState state = CaseState::unknown;
  std::string status;                // of a finished one: the word of its record
  std::int64_t array = 0, task = 0;  // the shard that has it last
  std::string job;                   // as Slurm's users write it: "123_4"
  std::string queue_reason;          // of a queued one
  std::string nodes;                 // of a running one
  double since_s = 0;                // of a running one: when it was begun
  std::string stage;                 // of a running one, as of a few seconds ago
  std::int64_t step = 0, steps = 0;
  std::int64_t unfinished = 0;  // how often it has taken its job with it
  double budget_s = 0;
};

struct AttemptStatus {
  std::int64_t array = 0, task = 0, number = 0;
  std::string job;
  std::int64_t restart = 0;
  std::vector<std::string> nodes;
  double began_s = 0, last_s = 0;  // until it ended, or was last heard of
  bool is_going_on = false;
  std::string verdict, reason;  // "" while it runs; "killed" without a reason, "unknown" when nobody knows
};

// A start of a job that began no case.
struct UnreadyStatus {
  std::int64_t array = 0, task = 0;
  shard::UnreadyStart start;
};

// What a start of a job found on one of its nodes before its first case.
struct NodeStatus {
  std::int64_t array = 0, task = 0;
  shard::JobStart start;
  shard::NodeReady ready;
};

struct RunStatus {
  std::vector<CaseStatus> cases;  // by index
  std::vector<AttemptStatus> attempts;
  std::vector<UnreadyStatus> unready;
  std::vector<NodeStatus> nodes;  // of each attempt and each unready start
  std::vector<shard::UnhealthyNode> unhealthy;
  std::string scheduler_problem;  // "" when the queue was read
  double node_hours_used = 0;
  std::optional<double> expected_end_s;  // by the budgets; nothing when nothing runs or waits

  std::map<std::string, std::int64_t> counts() const;  // by the status of a finished case, else by the state's name
  bool is_over() const;                                // nothing runs or waits
};

// `queue`: this user's jobs, or nothing with `problem` when the scheduler did not answer. Throws StorageError.
RunStatus read_status(const std::filesystem::path& run, const Submission& submission,
                      const std::optional<std::vector<QueuedJob>>& queue, const std::string& problem, double now_s);

// By its files alone: an open one may have left the queue.
enum class CanaryState { open, good, failed };
CanaryState canary_state(const std::filesystem::path& run, const SubmittedArray& canary);

}  // namespace assay::host::batch
