#include "run/case_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "common/rank_name.hpp"
#include "run/counted_case.hpp"
#include "run/crew_keys.hpp"
#include "run/group_request.hpp"
#include "run/in_process_case.hpp"
#include "run/output_files.hpp"
#include "run/rank_specs.hpp"

namespace assay::host::run {
namespace {

using std::chrono::milliseconds;

// The reports of other machines may take so long after this machine's ranks have ended because of a failure.
constexpr milliseconds late_reports{5000};

std::string unique_prefix() {
  static int count = 0;
  return fmt::format("case/{}/", count++);
}

// Leads one case through: it orders the ranks elsewhere, runs those here, and collects the reports of both.
class CaseGroup {
 public:
  CaseGroup(const CasePlan& planned, const CaseContext& context)
      : planned_(planned), context_(context), crew_(context.crew), prefix_(unique_prefix()) {}
  ~CaseGroup() {
    crew_.store().erase_prefix(prefix_);
    remove_half_written(here_);
  }
  CaseGroup(const CaseGroup&) = delete;
  CaseGroup& operator=(const CaseGroup&) = delete;

  CaseOutcome run() {
    if (const auto obstacle = assign_ranks()) return {record::result_without_worker(record::Status::failed, *obstacle)};
    if (is_counted(here_.front())) forget_counts(here_.front());
    launch::GroupRequest request = group_request(here_, context_.interrupts);
    request.on_failure = [&](const launch::GroupFailure& failure) { abort_others(failure.for_others); };
    if (!elsewhere_.empty()) request.poll_outside = [&] { return failure_elsewhere(); };
    const launch::GroupProgress progress = [&](std::int32_t, const launch::BoardView& view) { show(view); };
    const auto begin = std::chrono::steady_clock::now();
    launch::GroupOutcome outcome;
    try {
      outcome = launch::supervise_group(request, progress, context_.interrupts.count());
    } catch (const launch::WorkerStartError& e) {
      const std::string reason = planned_.ranks == 1 ? e.what() : rank_name(e.rank) + ": " + e.what();
      abort_others(reason);
      return {record::result_without_worker(record::Status::failed, reason)};
    } catch (const std::exception& e) {
      abort_others(e.what());
      throw;
    }
    if (outcome.interrupted && !all_finished(outcome)) return interrupted();
    std::vector<RankReport> reports = reports_of(outcome, here_, begin);
    if (!collect(reports, outcome.failure.has_value())) return interrupted();
    const bool asked_to_end = is_asked_to_end(reports);
    record::CaseResult result = combine(std::move(reports), planned_.values.measure.confidence());
    if (is_counted(here_.front())) take_counts(here_.front(), result);
    return {std::move(result), false, asked_to_end};
  }

 private:
  // In a launch each rank has a process of assay that starts it; without one, all are started here. Returns what stands
  // in the way of a file that a rank is to write; then no rank was assigned.
  std::optional<std::string> assign_ranks() {
    const bool alone = planned_.ranks == 1;
    places_ = crew_.places(planned_.ranks);
    const RankMeeting meeting = alone ? RankMeeting{} : RankMeeting{crew_.endpoint(), prefix_};
    std::vector<worker::CaseSpec> specs =
        specs_of_ranks(planned_, context_.target, context_.run_folder, places_, meeting);
    if (auto obstacle = obstacle_to_outputs(specs)) return obstacle;
    for (worker::CaseSpec& spec : specs) {
      context_.files.say_in(spec);
      if (spec.ranks.rank == 0 || !crew_.is_launched()) {
        here_.push_back(std::move(spec));
        continue;
      }
      crew_.give_order(spec);
      elsewhere_.push_back(spec.ranks.rank);
    }
    return std::nullopt;
  }

  void show(const launch::BoardView& view) const {
    const std::vector<std::string>& phases = context_.target.schema.phases;
    const bool in_phase = view.phase >= 0 && static_cast<std::size_t>(view.phase) < phases.size();
    context_.on_progress(name_of(view.stage), static_cast<std::int64_t>(view.step),
                         static_cast<std::int64_t>(view.total_steps),
                         in_phase ? phases[static_cast<std::size_t>(view.phase)] : "", view.part);
  }

  // A signal that came when nothing was left to do takes nothing away.
  static bool all_finished(const launch::GroupOutcome& outcome) {
    return std::all_of(outcome.workers.begin(), outcome.workers.end(), [](const launch::WorkerOutcome& worker) {
      return worker.status == launch::WorkerStatus::finished;
    });
  }

  CaseOutcome interrupted() {
    abort_others("the run was interrupted");
    return {std::nullopt, true};
  }

  void abort_others(const std::string& why) {
    if (!elsewhere_.empty()) crew_.store().set(abort_key(prefix_), why);
  }

  std::optional<RankReport> find(std::int32_t rank) {
    if (auto report = crew_.find_report(rank, prefix_)) return report;
    return crew_.find_loss(rank);
  }

  std::optional<std::string> failure_elsewhere() {
    for (const std::int32_t rank : elsewhere_)
      if (const auto report = find(rank); report && !is_ok(*report)) return named_reason(*report);
    return std::nullopt;
  }

  // Adds the reports of the ranks elsewhere. Those ranks have separate deadlines, on their machines; a machine that is
  // lost is a report, too. False: interrupted.
  bool collect(std::vector<RankReport>& reports, bool failed) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::int32_t> open = elsewhere_;
    while (!open.empty()) {
      if (context_.interrupts.count()->load() > 0) return false;
      std::erase_if(open, [&](std::int32_t rank) {
        auto report = find(rank);
        if (report) reports.push_back(std::move(*report));
        return report.has_value();
      });
      if (open.empty()) break;
      if (!failed && !std::all_of(reports.begin(), reports.end(), is_ok)) {
        failed = true;
        abort_others("another rank failed");
      }
      const milliseconds patience = failed ? late_reports : planned_.values.measure.timeout + late_reports;
      if (std::chrono::steady_clock::now() - begin > patience) {
        abort_others("a rank has not reported the end of the case");
        for (const std::int32_t rank : open) {
          reports.push_back(silent_follower(rank));
          crew_.leave_behind(rank);
        }
        break;
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
    std::sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return true;
  }

  RankReport silent_follower(std::int32_t rank) const {
    return {rank, places_[static_cast<std::size_t>(rank)].host,
            record::result_without_worker(record::Status::timeout,
                                          "its assay process has not reported the end of the case"),
            launch::FailureKind::overdue};
  }

  const CasePlan& planned_;
  const CaseContext& context_;
  Crew& crew_;
  const std::string prefix_;
  std::vector<RankPlace> places_;
  std::vector<worker::CaseSpec> here_;
  std::vector<std::int32_t> elsewhere_;
};

CaseOutcome carry_out_in_this_process(const CasePlan& planned, const CaseContext& context) {
  std::vector<worker::CaseSpec> specs =
      specs_of_ranks(planned, context.target, context.run_folder, context.crew.places(1), {});
  context.files.say_in(specs.front());
  if (const auto obstacle = obstacle_to_outputs(specs))
    return {record::result_without_worker(record::Status::failed, *obstacle)};
  record::CaseResult result = run_in_this_process(specs.front(), context.on_progress);
  remove_half_written(specs);
  return {std::move(result), context.interrupts.count()->load() > 0};
}

}  // namespace

CaseOutcome carry_out(const CasePlan& planned, const CaseContext& context) {
  if (planned.refusal) return {record::result_without_worker(planned.refusal->status, planned.refusal->reason)};
  if (planned.in_process) return carry_out_in_this_process(planned, context);
  return CaseGroup(planned, context).run();
}

}  // namespace assay::host::run
