#include "batch/status_command.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "batch/named_batch.hpp"
#include "batch/site_kinds.hpp"
#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/palette.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "shard/journal.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_lines = 20;  // of each kind; --all and --json have the rest

std::string time_text(double seconds_since_1970) {
  return utc_text(
      WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::duration<double>(seconds_since_1970))));
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(seconds, 0.0));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

// At most so many, and a line that says how many are left out.
class Lines {
 public:
  explicit Lines(bool all) : all_(all) {}
  void add(const std::string& line) {
    if (all_ || ++count_ <= most_lines) fmt::print("{}\n", line);
  }
  ~Lines() {
    if (!all_ && count_ > most_lines) fmt::print("  and {} more (--all)\n", count_ - most_lines);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

 private:
  const bool all_;
  std::size_t count_ = 0;
};

// The last line of a job's log that says more than the reasons that status has printed: a prologue's own error
// stands before them.
std::string last_line_of(const std::string& log, const std::set<std::string>& printed) {
  bool was_printed = false;
  for (std::size_t end = log.size(); end > 0;) {
    const std::size_t before = log.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::string line = log.substr(begin, end - begin);
    // srun's word that a task has ended so belongs to them.
    if (!line.empty() && !printed.contains(line) && !(was_printed && line.starts_with("srun: "))) return line;
    was_printed |= printed.contains(line);
    end = begin == 0 ? 0 : begin - 1;
  }
  return "";
}

// Prints the last lines of the batch scripts of lost cases: they hold errors of the scheduler, too.
void say_why_lost(const fs::path& run, const Submission& submission, const Scheduler& scheduler,
                  const RunStatus& status) {
  std::set<std::string> printed, reasons;
  for (const UnreadyStatus& each : status.unready) reasons.insert(each.start.reason);
  for (const CaseStatus& c : status.cases) {
    if (c.state != CaseState::lost && c.state != CaseState::quarantined) continue;
    if (c.job.empty() || printed.size() >= 3 || !printed.insert(c.job).second) continue;
    const fs::path log = batch_folder(run) / "log" / (c.job + ".log");
    std::error_code ignored;
    if (!fs::is_regular_file(log, ignored)) {
      const std::string ended =
          scheduler.how_ended({c.job, submission.arrays[static_cast<std::size_t>(c.array)].cluster});
      const std::string why = scheduler.why_no_log(ended, run.string());
      fmt::print("job {} has left no log{}{}\n", c.job, ended.empty() ? "" : " (" + ended + ")",
                 why.empty() ? "" : ": " + why);
      continue;
    }
    fmt::print("log of job {}: {}\n", c.job, log.string());
    if (const std::string line = last_line_of(read_file(log), reasons); !line.empty()) fmt::print("  {}\n", line);
  }
}

// Which nodes were looked at before a first case, and which of them were not as the site file says.
void say_nodes(const RunStatus& status) {
  std::set<std::string> ready, unready;
  for (const NodeStatus& each : status.nodes) (each.ready.is_ready() ? ready : unready).insert(each.ready.node);
  if (!ready.empty()) fmt::print("nodes ready: {}\n", fmt::join(ready, ", "));
  for (const shard::UnhealthyNode& each : status.unhealthy)
    fmt::print("unhealthy, and left out: {} ({})\n", each.node, each.reason);
  if (!unready.empty()) fmt::print("nodes not ready: {}\n", fmt::join(unready, ", "));
}

void print_text(const fs::path& run, const RunStatus& status, bool all) {
  const Palette palette = Palette::of(STDOUT_FILENO);
  const Submission submission = read_submission(run);
  const auto scheduler = scheduler_of(submission, run);
  std::vector<std::string> counts;
  for (const auto& [name, count] : status.counts()) counts.push_back(palette.paint(fmt::format("{} {}", count, name)));
  fmt::print("{}: {} case{}: {}\n", run.string(), status.cases.size(), status.cases.size() == 1 ? "" : "s",
             fmt::join(counts, ", "));
  if (!status.scheduler_problem.empty())
    fmt::print("scheduler unknown: {}; what follows is from the files alone\n", status.scheduler_problem);
  fmt::print("node-hours used: {:.2f}", status.node_hours_used);
  if (status.expected_end_s) fmt::print("; expected end by the budgets: {}", time_text(*status.expected_end_s));
  fmt::print("\n");
  const double now = seconds_since_1970();
  {
    Lines lines(all);
    for (const CaseStatus& c : status.cases)
      if (c.state == CaseState::running)
        lines.add(fmt::format("running: case {} in job {} on {}, for {}{}", c.index + 1, c.job, c.nodes,
                              duration_text(now - c.since_s),
                              c.stage.empty() ? ""
                              : c.steps > 0   ? fmt::format(", {} step {}/{}", c.stage, c.step, c.steps)
                                              : ", " + c.stage));
  }
  std::map<std::string, std::int64_t> reasons;  // of what waits
  for (const CaseStatus& c : status.cases)
    if (c.state == CaseState::queued)
      ++reasons[c.queue_reason.empty() ? "its shard runs" : scheduler->shown_reason(c.queue_reason)];
  for (const auto& [reason, count] : reasons)
    fmt::print("queued: {} case{} ({})\n", count, count == 1 ? "" : "s", reason);
  {
    Lines lines(all);
    for (const CaseStatus& c : status.cases) {
      if (c.state == CaseState::lost || c.state == CaseState::quarantined || c.has_failed())
        lines.add(fmt::format("{}: case {} (shard {}-{:04}{})",
                              palette.paint(c.has_failed() ? c.status : name_of(c.state)), c.index + 1, c.array, c.task,
                              c.job.empty() ? "" : ", job " + c.job));
    }
  }
  {
    Lines lines(all);
    for (const AttemptStatus& a : status.attempts)
      if (!a.is_going_on && a.verdict != "done" && a.verdict != "more")
        lines.add(fmt::format("attempt {} at shard {}-{:04}: {} after {}, job {} on {}{}", a.number, a.array, a.task,
                              a.verdict, duration_text(a.last_s - a.began_s), a.job.empty() ? "(none)" : a.job,
                              a.nodes.empty() ? "(unknown)" : fmt::format("{}", fmt::join(a.nodes, ", ")),
                              a.reason.empty() ? "" : ": " + a.reason));
  }
  say_nodes(status);
  {
    Lines lines(all);
    for (const UnreadyStatus& each : status.unready)
      lines.add(fmt::format("job {} at shard {}-{:04} began no case: {}", each.start.start.job, each.array, each.task,
                            each.start.reason));
  }
  say_why_lost(run, submission, *scheduler, status);
  const auto counts_of = status.counts();
  std::vector<std::string> again;
  for (const char* word : {"lost", "cancelled", "quarantined", "blocked"})
    if (counts_of.contains(word)) again.emplace_back(word);
  const bool has_failed =
      std::any_of(status.cases.begin(), status.cases.end(), [](const CaseStatus& c) { return c.has_failed(); });
  if (has_failed) again.emplace_back("failed");
  if (!again.empty())
    fmt::print("once their reason is mended: assay submit {} --resubmit {}\n", run.string(), fmt::join(again, ","));
  if (counts_of.contains("unsubmitted"))
    fmt::print("the submission was cut off; continue with: assay submit {}\n", run.string());
}

Json to_json(const fs::path& run, const RunStatus& status) {
  Json json{{"schema", "assay.batch-status/1"}, {"run", run.string()}};
  json["counts"] = status.counts();
  json["scheduler"] = status.scheduler_problem.empty() ? Json("known") : Json("unknown");
  if (!status.scheduler_problem.empty()) json["scheduler_problem"] = status.scheduler_problem;
  json["node_hours_used"] = status.node_hours_used;
  if (status.expected_end_s) json["expected_end"] = time_text(*status.expected_end_s);
  json["is_over"] = status.is_over();
  Json cases = Json::array();
  for (const CaseStatus& c : status.cases) {
    Json one{{"index", c.index}, {"state", name_of(c.state)}, {"shard", fmt::format("{}-{:04}", c.array, c.task)}};
    if (!c.status.empty()) one["status"] = c.status;
    if (!c.job.empty()) one["job"] = c.job;
    if (!c.queue_reason.empty()) one["reason"] = c.queue_reason;
    if (c.unfinished > 0) one["times_it_took_its_job_with_it"] = c.unfinished;
    if (c.state == CaseState::running) {
      one["nodes"] = c.nodes, one["since"] = time_text(c.since_s);
      if (!c.stage.empty()) one["stage"] = c.stage, one["step"] = c.step, one["steps"] = c.steps;
    }
    cases.push_back(std::move(one));
  }
  json["cases"] = std::move(cases);
  Json attempts = Json::array();
  for (const AttemptStatus& a : status.attempts)
    attempts.push_back({{"shard", fmt::format("{}-{:04}", a.array, a.task)},
                        {"attempt", a.number},
                        {"job", a.job},
                        {"restart", a.restart},
                        {"nodes", a.nodes},
                        {"began", time_text(a.began_s)},
                        {"seconds", a.last_s - a.began_s},
                        {"verdict", a.is_going_on ? "" : a.verdict},
                        {"reason", a.reason}});
  json["attempts"] = std::move(attempts);
  Json unready = Json::array();
  for (const UnreadyStatus& each : status.unready)
    unready.push_back({{"shard", fmt::format("{}-{:04}", each.array, each.task)},
                       {"job", each.start.start.job},
                       {"restart", each.start.start.restart},
                       {"at", time_text(each.start.at_s)},
                       {"reason", each.start.reason}});
  json["unready_starts"] = std::move(unready);
  Json nodes = Json::array();
  for (const NodeStatus& each : status.nodes) {
    Json one{{"shard", fmt::format("{}-{:04}", each.array, each.task)},
             {"job", each.start.job},
             {"restart", each.start.restart}};
    one.update(Json::parse(shard::json_text(each.ready)));
    nodes.push_back(std::move(one));
  }
  json["nodes"] = std::move(nodes);
  json["unhealthy"] = Json::array();
  for (const shard::UnhealthyNode& each : status.unhealthy)
    json["unhealthy"].push_back({{"node", each.node}, {"reason", each.reason}});
  return json;
}

// For a hook that drains nodes.
int say_unhealthy(const fs::path& run) {
  Json nodes = Json::array();
  for (const shard::UnhealthyNode& each : shard::unhealthy_nodes(batch_folder(run)))
    nodes.push_back({{"node", each.node}, {"reason", each.reason}});
  const Json json{{"schema", "assay.unhealthy-nodes/1"}, {"run", run.string()}, {"nodes", nodes}};
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  return nodes.empty() ? exit_ok : exit_failed;
}

}  // namespace

int show_status(const StatusRequest& request) {
  const fs::path run = batch_run(request.run);
  if (request.unhealthy) return say_unhealthy(run);
  const bool watches = request.watch.has_value();
  const double period_s = request.watch.value_or(0);
  if (watches && !(period_s >= 1 && period_s <= 86400))
    throw UsageError("--watch is below 1 or above 86400; expected seconds, and few questions to the scheduler");
  for (;;) {
    const RunStatus status = status_of(run);
    if (request.json)
      fmt::print("{}\n", to_json(run, status).dump(-1, ' ', false, Json::error_handler_t::replace));
    else
      print_text(run, status, request.all);
    std::fflush(stdout);
    if (!watches || status.is_over()) return exit_ok;
    std::this_thread::sleep_for(std::chrono::duration<double>(period_s));
    if (!request.json) fmt::print("\n");
  }
}

int cancel(const std::string& given) {
  const fs::path run = batch_run(given);
  const Submission submission = read_submission(run);
  const auto scheduler = scheduler_of(submission, run);
  std::map<std::string, SubmittedJob> jobs;  // by what people read
  for (const QueuedJob& job : scheduler->queue(submission.users))
    for (const SubmittedArray& array : submission.arrays)
      if (job.is_active() && (array.has(job) || job.comment == comment_of(array.id + "-end")))
        jobs.emplace(text_of({job.array, job.cluster}), SubmittedJob{job.array, job.cluster});
  if (jobs.empty()) {
    fmt::print("nothing of {} is in the queue\n", run.string());
    return exit_ok;
  }
  try {
    for (const SubmittedArray& array : submission.arrays)
      if (array.job && jobs.contains(text_of({*array.job, array.cluster}))) mark_cancelled(run, array);
  } catch (const StorageError& e) {  // a full disk is no reason to let jobs go on
    fmt::print(stderr, "note: {}; cases without a record will be 'lost', not 'cancelled'\n", e.what());
  }
  std::vector<SubmittedJob> arrays;
  for (const auto& [text, job] : jobs) arrays.push_back(job);
  scheduler->cancel(arrays);
  fmt::print("cancelled: {} job{}; finished cases are kept\n", jobs.size(), jobs.size() == 1 ? "" : "s");
  return exit_ok;
}

}  // namespace assay::host::batch
