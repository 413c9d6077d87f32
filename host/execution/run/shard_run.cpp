#include "run/shard_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/host_list.hpp"
#include "common/host_name.hpp"
#include "common/sha256.hpp"
#include "common/utc.hpp"
#include "launch/signals.hpp"
#include "record/json.hpp"
#include "results/store.hpp"
#include "run/found_device.hpp"
#include "run/node_ready_check.hpp"
#include "run/plan_basis.hpp"
#include "run/recorded_case.hpp"
#include "run/run_records.hpp"
#include "shard/journal.hpp"
#include "shard/node_ready.hpp"
#include "shard/shard_state.hpp"
#include "telemetry/environment.hpp"

namespace assay::host::run {
namespace {

namespace fs = std::filesystem;
using shard::JournalEntry;

constexpr double progress_period_s = 2;

// SIGUSR1 asks to stop after the case at hand.
class FinishRequest {
 public:
  FinishRequest() {
    asked_ = false;
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_handler = [](int) { asked_ = true; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &before_);
  }
  ~FinishRequest() { sigaction(SIGUSR1, &before_, nullptr); }
  FinishRequest(const FinishRequest&) = delete;
  FinishRequest& operator=(const FinishRequest&) = delete;
  bool is_asked() const { return asked_; }

 private:
  inline static std::atomic<bool> asked_{false};
  struct sigaction before_ {};
};

// Interrupts the run, as SIGTERM does, once the time of the job is over: before the scheduler ends the job, which would
// then not start again.
class TimeLimit {
 public:
  explicit TimeLimit(const std::optional<std::chrono::system_clock::time_point>& until) {
    if (!until) return;
    struct sigevent event {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGTERM;
    is_set_ = ::timer_create(CLOCK_REALTIME, &event, &timer_) == 0;
    struct itimerspec at {};
    at.it_value.tv_sec = std::max<std::time_t>(std::chrono::system_clock::to_time_t(*until), 1);
    if (is_set_) ::timer_settime(timer_, TIMER_ABSTIME, &at, nullptr);
  }
  ~TimeLimit() {
    if (is_set_) ::timer_delete(timer_);
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  timer_t timer_{};
  bool is_set_ = false;
};

struct Ended {
  Verdict verdict;
  std::string reason;
};

class ShardRun {
 public:
  ShardRun(const experiment::Experiment& experiment, const RunTarget& target, const ShardOptions& options,
           RunListener& listener)
      : experiment_(experiment), target_(target), options_(options), listener_(listener) {}

  int run() {
    Ended ended{Verdict::failed, ""};
    try {
      ended = claim() ? attempt() : Ended{Verdict::busy, holder_text()};
    } catch (const wireup::WireupError& e) {
      ended.reason = e.what();
      if (interrupts_.count()->load() > 0)
        ended = {is_out_of_time() ? Verdict::more : Verdict::stopped, "the job was asked to end"};
    } catch (const ReadingStopped& e) {  // an input
      ended = {is_out_of_time() ? Verdict::more : Verdict::stopped, e.what()};
    } catch (const std::exception& e) {
      ended.reason = e.what();
    }
    try {
      if (!folder_.empty()) shard::write_end(folder_, {name_of(ended.verdict), ended.reason, seconds_since_1970()});
    } catch (const StorageError& e) {  // the verdict below is then all there is
      listener_.message(e.what());
    }
    const int code = say(ended);
    // Not before: srun ends the whole step when the first of its processes fails, and the last one writes the verdict.
    if (crew_) crew_->dismiss(exit_ok);
    return code;
  }

 private:
  bool claim() {
    const shard::AttemptClaim mine{options_.start, host_name(), ::getpid(), options_.nodes, seconds_since_1970()};
    const shard::Claimed claimed = claim_next_attempt(options_.folder, mine, options_.is_over);
    holder_ = claimed.holder;
    number_ = claimed.number;
    if (claimed.folder) folder_ = *claimed.folder;
    return claimed.folder.has_value();
  }

  std::string holder_text() const {
    return fmt::format(
        "attempt {} of this shard is running: {} on {} (process {}); wait for it to end, or cancel its job", number_,
        holder_.start.job.empty() ? "a run by hand" : "job " + holder_.start.job, holder_.host, holder_.pid);
  }

  Ended attempt() {
    if (auto changed = what_changed()) return {Verdict::changed, *changed};
    // The other processes of the launch wait for this one, whatever there is left to do.
    crew_ = options_.launched ? std::make_unique<Crew>(*options_.launched, options_.folder,
                                                       run_wide_settings(experiment_).wireup_timeout, interrupts_)
                              : std::make_unique<Crew>();
    const shard::ShardState state = shard::read_shard_state(options_.folder);
    auto part = results::RunFolder::open_part(folder_, record::json_text(environment(), 2));
    for (const std::string& note : part.notes()) listener_.message("note: " + note);
    shard::Journal journal(folder_ / "journal.jsonl");
    const std::vector<std::int64_t> order = order_of_cases(state);
    Ended ended = order.empty() ? end_of_shard(state) : run_cases(order, state, part, journal);
    if (const std::string refused = crew_->strangers_text(); !refused.empty()) listener_.message("note: " + refused);
    return ended;
  }

  // With what each node of the job was found to be like before it.
  nlohmann::ordered_json environment() const {
    auto json = telemetry::capture_environment();
    for (const shard::NodeReady& node : shard::read_nodes_ready(options_.folder, options_.start))
      json["node_ready"].push_back(nlohmann::ordered_json::parse(shard::json_text(node)));
    return json;
  }

  std::optional<std::string> what_changed() const {
    if (options_.experiment_hash != options_.plan.experiment_hash)
      return "the experiment.toml of the run is not what was submitted; restore it, or submit the experiment anew";
    if (target_.file_hash != options_.plan.plugin_hash)
      return fmt::format("the plugin {} is not what was submitted; restore it, or submit the experiment anew",
                         target_.plugin_file.string());
    for (const std::int64_t index : options_.plan.cases)
      if (!find_case(index)) return fmt::format("the experiment has no case {}; submit it anew", index + 1);
    return std::nullopt;
  }

  const experiment::Case* find_case(std::int64_t index) const {
    const auto found = std::find_if(experiment_.cases.begin(), experiment_.cases.end(),
                                    [index](const experiment::Case& c) { return c.index == index; });
    return found == experiment_.cases.end() ? nullptr : &*found;
  }

  // The cases without a record. One that was at hand when its job was asked to end comes after the others, and one that
  // may have taken its job with it last, so that it takes no other with it.
  std::vector<std::int64_t> order_of_cases(const shard::ShardState& state) const {
    std::vector<std::int64_t> order;
    for (const std::int64_t index : options_.plan.cases)
      if (!state.is_finished(index)) order.push_back(index);
    const auto left_of = [&](std::int64_t index) {
      const auto found = state.cases.find(index);
      return found == state.cases.end() ? 0 : found->second.left;
    };
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const bool may_a = unfinished_of(state, a) > 0, may_b = unfinished_of(state, b) > 0;
      return may_a != may_b ? may_b : left_of(a) < left_of(b);
    });
    return order;
  }

  std::int64_t unfinished_of(const shard::ShardState& state, std::int64_t index) const {
    const auto found = state.cases.find(index);
    return options_.plan.unfinished_before_of(index) + (found == state.cases.end() ? 0 : found->second.unfinished);
  }

  RunPlan planned(const std::vector<std::int64_t>& order) {
    experiment::Experiment part = experiment_;
    std::erase_if(part.cases, [&](const experiment::Case& c) {
      return std::find(order.begin(), order.end(), c.index) == order.end();
    });
    PlanBasis basis = plan_basis(target_, *files_, options_.launched, false, *interrupts_.count());
    basis.ask_device = [this](const std::string& wanted) {
      worker::FoundDevice found =
          ask_for_device(wanted, files_->take_devices(wanted), folder_ / "logs" / "devices.log", interrupts_);
      if (const std::string problem = problem_of_device(options_.plan.promised, wanted, found); !problem.empty())
        throw std::runtime_error(host_name() + ": " + problem);
      if (!found.note.empty()) listener_.message("note: " + found.note);
      return found;
    };
    return make_plan(part, basis);
  }

  Ended run_cases(const std::vector<std::int64_t>& order, const shard::ShardState& state, results::RunFolder& part,
                  shard::Journal& journal) {
    files_.emplace(target_, folder_);
    const RunPlan plan = planned(order);
    std::map<std::int64_t, const CasePlan*> by_index;
    for (const CasePlan& each : plan.cases) by_index[each.values.index] = &each;
    VerifiedCases verified(experiment_.output.verify);
    const CaseContext context{target_,
                              *files_,
                              interrupts_,
                              *crew_,
                              part.path(),
                              [this](const char* stage, std::int64_t step, std::int64_t steps, const std::string& phase,
                                     const std::string& part) { show(stage, step, steps, phase, part); },
                              verified};
    bool is_first = true;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const CasePlan& next = *by_index.at(order[i]);
      if (shard::moved_cases(options_.folder).contains(order[i])) continue;
      if (unfinished_of(state, order[i]) >= shard::most_unfinished) {
        quarantine(next, state, part, journal);
        continue;
      }
      if (auto stop = why_stop(order[i], is_first)) return *stop;
      is_first = false;
      listener_.case_started(next.values, i, order.size());
      at_hand_ = order[i];
      journal.append({JournalEntry::Event::begin, order[i], seconds_since_1970(), ""});
      show("load", 0, 0, "", "");
      RecordedCase ran;
      if (const auto problem = problem_of_place(next.values))
        ran.record = full_record(next, target_, record::result_without_worker(record::Status::failed, *problem),
                                 utc_text(std::chrono::system_clock::now()));
      else
        ran = run_or_leave(next, context, journal);
      if (ran.record && was_ended_with_the_job(*ran.record)) ran = {std::nullopt, true};
      // A record that says `crashed` because a node is gone would be the last word on the case. It counts as one that
      // has taken its job with it, and the job starts again.
      const bool has_losses = crew_->has_losses();
      if (has_losses && ran.record && !ran.record->result.is_ok() && !ran.interrupted)
        return {Verdict::more, "another process of the job is gone: " + ran.record->result.reason};
      if (ran.record) {
        ran.record->environment = part.environment_id();
        part.append(*ran.record);
        journal.append({JournalEntry::Event::end, order[i], seconds_since_1970(), ran.record->result.status_text()});
        listener_.case_finished(*ran.record);
        if (options_.plan.is_canary && !is_good_canary(ran.record->result.status_text()))
          return {Verdict::canary,
                  fmt::format("the canary is {}: {}", ran.record->result.status_text(), ran.record->result.reason)};
      }
      if (has_losses && !ran.interrupted) return {Verdict::more, "another process of the job is gone"};
      if (ran.interrupted) {
        if (is_out_of_time()) return out_of_time(order[i], ran.record.has_value());
        // srun ends the whole step when one of its processes has died: the case may have taken that one with it.
        if (const std::string death = ran.record ? "" : crew_->death(); !death.empty()) return {Verdict::more, death};
        if (!ran.record) journal.append({JournalEntry::Event::left, order[i], seconds_since_1970(), ""});
        return {Verdict::stopped, "the job was asked to end"};
      }
    }
    return end_of_shard(shard::read_shard_state(options_.folder));
  }

  // The end of workers that the scheduler has ended with the job is not the case's.
  bool was_ended_with_the_job(const record::CaseRecord& record) const {
    if (record.result.status != record::Status::crashed && record.result.status != record::Status::failed) return false;
    return is_told_to_end(interrupts_);
  }

  // What ends a run with exit code 0 in a launch is good enough for the others to start.
  bool is_good_canary(const std::string& status) const {
    const std::vector<std::string> allow = run_wide_settings(experiment_).allow;
    return status == record::name_of(record::Status::ok) || status == record::name_of(record::Status::unsupported) ||
           std::find(allow.begin(), allow.end(), status) != allow.end();
  }

  // A job that did not get the nodes that the case asks for would measure something else. By hand there is no job.
  std::optional<std::string> problem_of_place(const experiment::Case& c) const {
    if (options_.start.job.empty()) return std::nullopt;
    const std::set<std::string> here(options_.nodes.begin(), options_.nodes.end());
    if (static_cast<std::int64_t>(here.size()) != c.cluster.nodes)
      return fmt::format("[cluster] nodes is {}, but the step of job {} runs on {} ({}); look at the site's options",
                         c.cluster.nodes, options_.start.job, here.size(), fmt::join(here, ", "));
    const std::vector<std::string> names = names_of_nodes(c.cluster.node.value_or(""));
    const std::set<std::string> wanted(names.begin(), names.end());
    if (!wanted.empty() && wanted != here)
      return fmt::format("[cluster] node is {}, but job {} runs on {}; look at the site's options", *c.cluster.node,
                         options_.start.job, fmt::join(here, ", "));
    return std::nullopt;
  }

  // An error of this process does not concern the current case.
  RecordedCase run_or_leave(const CasePlan& planned, const CaseContext& context, shard::Journal& journal) {
    try {
      return run_and_record(planned, context);
    } catch (const std::exception&) {
      journal.append({JournalEntry::Event::left, planned.values.index, seconds_since_1970(), ""});
      throw;
    }
  }

  // A canary that was tried again after it had failed stays failed.
  Ended end_of_shard(const shard::ShardState& state) const {
    if (options_.plan.is_canary)
      for (const auto& [index, trace] : state.cases)
        if (!is_good_canary(trace.status))
          return {Verdict::canary,
                  fmt::format("the canary is {}", trace.status.empty() ? "in quarantine" : trace.status)};
    return {Verdict::done, ""};
  }

  std::optional<Ended> why_stop(std::int64_t next, bool is_first) const {
    if (interrupts_.count()->load() > 0)
      return Ended{is_out_of_time() ? Verdict::more : Verdict::stopped, "the job was asked to end"};
    if (shard::is_superseded(options_.folder, number_))
      return Ended{Verdict::superseded, "another attempt at this shard has begun"};
    std::error_code ignored;
    if (finish_.is_asked() || fs::exists(shard::stop_file(options_.folder, options_.start), ignored))
      return Ended{Verdict::more, "it was asked to stop after the case at hand"};
    // The first case of an attempt is begun in any case: an attempt without one would come again without end.
    const auto budget = std::chrono::duration<double>(options_.plan.budget_s_of(next));
    if (!is_first && options_.until && std::chrono::system_clock::now() + budget > *options_.until)
      return Ended{Verdict::more,
                   fmt::format("the next case needs {:.0f} s, and the job ends before that", budget.count())};
    return std::nullopt;
  }

  bool is_out_of_time() const { return options_.until && std::chrono::system_clock::now() >= *options_.until; }

  // A case that was cut off counts as one that has taken its job with it: it comes last in the next start.
  Ended out_of_time(std::int64_t index, bool has_record) const {
    if (has_record) return {Verdict::more, "the time of the job is over"};
    return {Verdict::more,
            fmt::format("case {} was cut off at the end of the job's time; its budget is {:.0f} s, and it "
                        "takes longer: raise [cluster] budget",
                        index + 1, options_.plan.budget_s_of(index))};
  }

  // Its record says so, and where it ran.
  void quarantine(const CasePlan& planned, const shard::ShardState& state, results::RunFolder& part,
                  shard::Journal& journal) {
    std::vector<std::string> jobs;
    std::string last;  // what the last of them said
    for (const shard::Attempt& attempt : state.attempts) {
      bool is_at_hand = false;
      for (const JournalEntry& entry : shard::read_journal(attempt.folder / "journal.jsonl"))
        if (entry.case_index == planned.values.index) is_at_hand = entry.event == JournalEntry::Event::begin;
      if (is_at_hand)
        jobs.push_back(fmt::format("{} on {}",
                                   attempt.claim.start.job.empty() ? "a run by hand" : "job " + attempt.claim.start.job,
                                   fmt::join(attempt.claim.nodes, ", ")));
      if (is_at_hand && attempt.end) last = attempt.end->reason;
    }
    if (options_.plan.unfinished_before_of(planned.values.index) > 0) jobs.emplace_back("earlier jobs of the batch");
    auto result = record::result_without_worker(
        record::Status::crashed, fmt::format("quarantined: it has taken its job with it {} times ({})",
                                             unfinished_of(state, planned.values.index), fmt::join(jobs, "; ")) +
                                     (last.empty() ? "" : "; the last time: " + last));
    record::CaseRecord record =
        full_record(planned, target_, std::move(result), utc_text(std::chrono::system_clock::now()));
    record.environment = part.environment_id();
    part.append(record);
    journal.append({JournalEntry::Event::quarantine, planned.values.index, seconds_since_1970(), "crashed"});
    listener_.case_finished(record);
  }

  void show(const char* stage, std::int64_t step, std::int64_t steps, const std::string& phase,
            const std::string& part) {
    listener_.progress(stage, step, steps, phase, part);
    const double now = seconds_since_1970();
    if (now - shown_at_s_ < progress_period_s) return;
    shown_at_s_ = now;
    try {
      shard::write_progress(folder_, {at_hand_, stage, step, steps, now});
    } catch (const StorageError&) {  // it is for the eye alone: the record will say whether the disk is full
    }
  }

  int say(const Ended& ended) {
    if (!ended.reason.empty()) listener_.message(ended.reason);
    int code = exit_failed;
    switch (ended.verdict) {
      case Verdict::done:
      case Verdict::more: code = exit_ok; break;
      case Verdict::busy: code = exit_busy; break;
      case Verdict::stopped: code = exit_interrupted; break;
      case Verdict::changed:
      case Verdict::superseded:
      case Verdict::canary:
      case Verdict::failed: break;
    }
    try {
      write_verdict(options_.folder, options_.start, ended.verdict);
    } catch (const StorageError& e) {
      listener_.message(e.what());
      return exit_failed;
    }
    return code;
  }

  const experiment::Experiment& experiment_;
  const RunTarget& target_;
  const ShardOptions& options_;
  RunListener& listener_;
  launch::InterruptHandler interrupts_;
  TimeLimit limit_{options_.until};
  FinishRequest finish_;
  fs::path folder_;  // of this attempt
  std::optional<TakenFiles> files_;
  std::unique_ptr<Crew> crew_;
  std::int64_t number_ = 0;
  shard::AttemptClaim holder_;
  std::int64_t at_hand_ = -1;
  double shown_at_s_ = 0;
};

}  // namespace

const char* name_of(Verdict verdict) {
  constexpr std::array names{"done", "more", "stopped", "busy", "changed", "superseded", "canary", "failed"};
  return names[static_cast<std::size_t>(verdict)];
}

void write_verdict(const fs::path& shard_folder, const shard::JobStart& start, Verdict verdict) {
  write_file_atomically(shard::verdict_file(shard_folder, start), fmt::format("{}\n", name_of(verdict)), Durable::yes);
}

int run_shard(const experiment::Experiment& experiment, const RunTarget& target, const ShardOptions& options,
              RunListener& listener) {
  return ShardRun(experiment, target, options, listener).run();
}

}  // namespace assay::host::run
