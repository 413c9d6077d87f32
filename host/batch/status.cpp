#include "batch/status.hpp"

#include "batch/site_kinds.hpp"
#include "shard/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

class StatusReader {
 public:
  StatusReader(const fs::path& run, const Submission& submission, const std::optional<std::vector<QueuedJob>>& queue,
               double now_s)
      : run_(run), submission_(submission), queue_(queue), now_s_(now_s) {
    if (queue_)
      for (const QueuedJob& job : *queue_) {
        by_array_[text_of({job.array, job.cluster})].push_back(&job);
        by_comment_[job.comment].push_back(&job);
      }
    for (const SubmittedArray& array : submission_.arrays)
      if (array.is_canary) canaries_[array.round] = state_of_canary(array);
  }

  RunStatus read() {
    for (const SubmittedArray& array : submission_.arrays)
      for (std::int64_t task = 0; task < array.tasks; ++task) read_shard(array, task);
    for (auto& [index, c] : cases_) status_.cases.push_back(std::move(c));
    status_.unhealthy = shard::unhealthy_nodes(batch_folder(run_));
    estimate_end();
    return std::move(status_);
  }

 private:
  // The line of the queue that holds the task; null when there is none, or the scheduler did not answer.
  const QueuedJob* job_of(const SubmittedArray& array, std::int64_t task) const {
    if (!queue_) return nullptr;
    // As SubmittedArray::has().
    const auto in = [&](const auto& jobs, const std::string& key) -> const QueuedJob* {
      const auto found = jobs.find(key);
      if (found != jobs.end())
        for (const QueuedJob* job : found->second)
          if (job->is_active() && (job->tasks.empty() || job->has_task(task))) return job;
      return nullptr;
    };
    const QueuedJob* by_number = array.job ? in(by_array_, text_of({*array.job, array.cluster})) : nullptr;
    return by_number ? by_number : in(by_comment_, comment_of(array.id));
  }

  void read_shard(const SubmittedArray& array, std::int64_t task) {
    const fs::path folder = array.shard_folder(run_, task);
    const shard::ShardPlan plan = shard::read_shard_plan(folder);
    const shard::ShardState state = shard::read_shard_state(folder);
    const QueuedJob* job = job_of(array, task);
    const bool is_running = job && !job->is_pending();
    for (std::size_t i = 0; i < state.attempts.size(); ++i)
      add_attempt(array, task, state.attempts[i], i + 1 == state.attempts.size(), is_running);
    for (const shard::Attempt& attempt : state.attempts) add_nodes(array, task, folder, attempt.claim.start);
    for (shard::UnreadyStart& start : shard::unready_starts(folder)) {
      add_nodes(array, task, folder, start.start);
      status_.unready.push_back({array.number, task, std::move(start)});
    }
    double open_s = 0;
    for (std::size_t i = 0; i < plan.cases.size(); ++i) {
      CaseStatus c = status_of(array, task, plan, state, plan.cases[i], job);
      c.budget_s = plan.budgets_s[i];
      if (c.state == CaseState::running) open_s += std::max(0.0, c.budget_s - (now_s_ - c.since_s));
      if (c.state == CaseState::queued) open_s += c.budget_s;
      cases_[c.index] = std::move(c);  // a later array has the last word
    }
    if (open_s <= 0) return;
    (is_running ? running_s_ : waiting_s_).push_back(open_s);
    at_once_ = std::min(at_once_, jobs_at_once(array.shape, submission_.array_parallel,
                                               static_cast<std::int64_t>(hosts_of(submission_.target).size())));
  }

  void add_nodes(const SubmittedArray& array, std::int64_t task, const fs::path& folder, const shard::JobStart& start) {
    for (shard::NodeReady& ready : shard::read_nodes_ready(folder, start))
      status_.nodes.push_back({array.number, task, start, std::move(ready)});
  }

  CaseStatus status_of(const SubmittedArray& array, std::int64_t task, const shard::ShardPlan& plan,
                       const shard::ShardState& state, std::int64_t index, const QueuedJob* job) const {
    CaseStatus c;
    c.index = index, c.array = array.number, c.task = task;
    c.job = array.job && *array.job != job_gone ? fmt::format("{}_{}", *array.job, task) : "";
    c.unfinished = plan.unfinished_before_of(index);
    const auto found = state.cases.find(index);
    const shard::CaseTrace trace = found == state.cases.end() ? shard::CaseTrace{} : found->second;
    c.unfinished += trace.unfinished;
    if (trace.is_quarantined) {
      c.state = CaseState::quarantined;
    } else if (!trace.status.empty()) {
      c.state = CaseState::finished;
      c.status = trace.status;
    } else if (job) {
      c.state = trace.is_at_hand && !job->is_pending() ? CaseState::running : CaseState::queued;
      c.queue_reason = job->is_pending() ? job->reason : "";
      if (c.state == CaseState::running) describe_running(state, trace, *job, c);
    } else if (!queue_) {
      c.state = CaseState::unknown;
    } else if (is_cancelled(run_, array)) {
      c.state = CaseState::cancelled;  // that it was at hand says nothing against it
    } else if (is_blocked(array)) {
      c.state = CaseState::blocked;
    } else if (!array.job) {
      c.state = CaseState::unsubmitted;
    } else {
      c.unfinished += trace.is_at_hand ? 1 : 0;
      c.state = c.unfinished >= shard::most_unfinished ? CaseState::quarantined : CaseState::lost;
    }
    return c;
  }

  void describe_running(const shard::ShardState& state, const shard::CaseTrace& trace, const QueuedJob& job,
                        CaseStatus& c) const {
    c.nodes = job.nodes, c.since_s = trace.last_begin_s;
    const auto& progress = state.attempts.back().progress;
    if (!progress || progress->case_index != c.index) return;
    c.stage = progress->stage, c.step = progress->step, c.steps = progress->steps;
  }

  // One that has left the queue without being ok lets nothing start.
  CanaryState state_of_canary(const SubmittedArray& canary) const {
    const CanaryState state = canary_state(run_, canary);
    const bool is_gone = state == CanaryState::open && queue_ && canary.job && !job_of(canary, 0);
    return is_gone ? CanaryState::failed : state;
  }

  bool is_blocked(const SubmittedArray& array) const {
    const auto canary = canaries_.find(array.round);
    return !array.is_canary && canary != canaries_.end() && canary->second == CanaryState::failed;
  }

  void add_attempt(const SubmittedArray& array, std::int64_t task, const shard::Attempt& attempt, bool is_last,
                   bool is_running) {
    AttemptStatus a;
    a.array = array.number, a.task = task, a.number = attempt.number;
    a.job = attempt.claim.start.job, a.restart = attempt.claim.start.restart, a.nodes = attempt.claim.nodes;
    a.began_s = attempt.claim.began_s;
    a.is_going_on = is_last && is_running && !attempt.end;
    if (attempt.end) {
      a.last_s = attempt.end->ended_s, a.verdict = attempt.end->verdict, a.reason = attempt.end->reason;
    } else {
      a.last_s = a.is_going_on ? now_s_ : a.began_s;
      if (attempt.progress) a.last_s = std::max(a.last_s, attempt.progress->at_s);
      for (const shard::JournalEntry& entry : shard::read_journal(attempt.folder / "journal.jsonl"))
        a.last_s = std::max(a.last_s, entry.at_s);
      // Without the scheduler's word the last attempt may well go on.
      if (!a.is_going_on) a.verdict = queue_ || !is_last ? "killed" : "unknown";
    }
    status_.node_hours_used += static_cast<double>(array.shape.nodes) * std::max(0.0, a.last_s - a.began_s) / 3600;
    status_.attempts.push_back(std::move(a));
  }

  // Assigns waiting shards, longest first, to the place that is free first; other users' jobs are not known.
  void estimate_end() {
    if (running_s_.empty() && waiting_s_.empty()) return;
    std::vector<double> free_at = running_s_;
    free_at.resize(std::max(static_cast<std::size_t>(at_once_), free_at.size()), 0);
    std::sort(waiting_s_.rbegin(), waiting_s_.rend());
    for (const double shard_s : waiting_s_) *std::min_element(free_at.begin(), free_at.end()) += shard_s;
    status_.expected_end_s = now_s_ + *std::max_element(free_at.begin(), free_at.end());
  }

  const fs::path& run_;
  const Submission& submission_;
  const std::optional<std::vector<QueuedJob>>& queue_;
  const double now_s_;
  std::map<std::string, std::vector<const QueuedJob*>> by_array_, by_comment_;
  std::map<std::int64_t, CanaryState> canaries_;  // by round
  std::map<std::int64_t, CaseStatus> cases_;
  std::vector<double> running_s_, waiting_s_;                        // what is left of each shard
  std::int64_t at_once_ = std::numeric_limits<std::int64_t>::max();  // of the widest of those shapes
  RunStatus status_;
};

}  // namespace

const char* name_of(CaseState state) {
  constexpr std::array names{"unsubmitted", "queued",    "running", "finished", "quarantined",
                             "lost",        "cancelled", "blocked", "unknown"};
  return names[static_cast<std::size_t>(state)];
}

std::map<std::string, std::int64_t> RunStatus::counts() const {
  std::map<std::string, std::int64_t> counts;
  for (const CaseStatus& c : cases) ++counts[c.state == CaseState::finished ? c.status : name_of(c.state)];
  return counts;
}

bool RunStatus::is_over() const {
  return std::none_of(cases.begin(), cases.end(), [](const CaseStatus& c) {
    return c.state == CaseState::queued || c.state == CaseState::running || c.state == CaseState::unknown;
  });
}

RunStatus read_status(const fs::path& run, const Submission& submission,
                      const std::optional<std::vector<QueuedJob>>& queue, const std::string& problem, double now_s) {
  RunStatus status = StatusReader(run, submission, queue, now_s).read();
  status.scheduler_problem = problem;
  return status;
}

CanaryState canary_state(const fs::path& run, const SubmittedArray& canary) {
  bool good = false;
  for (const shard::Attempt& attempt : shard::read_attempts(canary.shard_folder(run, 0))) {
    if (attempt.end && attempt.end->verdict == "canary") return CanaryState::failed;
    if (attempt.end && attempt.end->verdict == "done") good = true;
  }
  return good ? CanaryState::good : CanaryState::open;
}

}  // namespace assay::host::batch
