#include "run/case_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "telemetry/cpu_nodes.hpp"

namespace assay::host {
namespace {

using std::chrono::milliseconds;

// After this machine's ranks have ended because of a failure, how long the others' reports may take.
constexpr milliseconds late_reports{5000};

std::string unique_prefix() {
  static int count = 0;
  return fmt::format("case/{}/", count++);
}

// What leads one case through: the orders, the local ranks, the reports of the others.
class RankedCase {
 public:
  RankedCase(const Case& c, std::int32_t count, const CaseContext& context, Crew& crew)
      : case_(c), context_(context), crew_(crew), prefix_(unique_prefix()), places_(crew.places(count)) {}
  ~RankedCase() { crew_.store().erase_prefix(prefix_); }
  RankedCase(const RankedCase&) = delete;
  RankedCase& operator=(const RankedCase&) = delete;

  CaseOutcome run(const std::string& device_kind, std::int32_t device_count) {
    GroupRequest request;
    std::vector<std::int32_t> here;
    for (std::size_t r = 0; r < places_.size(); ++r) {
      const auto rank = static_cast<std::int32_t>(r);
      const WorkerOrder order = order_for(rank, device_kind, device_count);
      if (rank > 0 && crew_.is_launched()) {
        crew_.give_order(rank, prefix_, order);
        remote_.push_back(rank);
        continue;
      }
      request.workers.push_back(make_request(order, -1));
      here.push_back(rank);
    }
    request.ranks = here;
    request.wake_fd = context_.interrupts.wake_fd();
    request.stall_timeout = case_.run.stall_timeout;
    request.judge_result = judge_result;
    request.on_failure = [&](const GroupFailure& failure) { abort_others(failure.reason); };
    if (!remote_.empty()) request.poll_outside = [&] { return failure_elsewhere(); };
    const std::vector<std::string>& phases = context_.target.schema.phases;
    const GroupProgress progress = [&](std::int32_t, const BoardView& view) {
      const bool in_phase = view.phase >= 0 && static_cast<std::size_t>(view.phase) < phases.size();
      context_.on_progress(name_of(view.stage), static_cast<std::int64_t>(view.step),
                           static_cast<std::int64_t>(view.total_steps),
                           in_phase ? phases[static_cast<std::size_t>(view.phase)] : "");
    };
    const auto begin = std::chrono::steady_clock::now();
    GroupOutcome outcome;
    try {
      outcome = supervise_group(request, progress, context_.interrupts.count());
    } catch (const std::exception& e) {
      abort_others(e.what());
      throw;
    }
    if (outcome.interrupted) {
      abort_others("the run was interrupted");
      return {Record(), true};
    }
    const bool failed = outcome.failure.has_value();
    std::vector<RankReport> reports = reports_of(outcome, here, places_.front().host, begin);
    if (!collect(reports, failed)) return {Record(), true};
    const double confidence = case_.measure.until ? case_.measure.until->confidence : 0.95;
    return {combine(std::move(reports), confidence), false};
  }

 private:
  WorkerOrder order_for(std::int32_t rank, const std::string& device_kind, std::int32_t device_count) {
    const RankPlace& place = places_[static_cast<std::size_t>(rank)];
    RankSpec spec;
    ProcessorShare share{0, 0};
    spec.rank = rank, spec.count = static_cast<std::int32_t>(places_.size());
    spec.local_count = 0;
    for (std::size_t r = 0; r < places_.size(); ++r) {
      if (places_[r].host != place.host) continue;
      const bool before = r < static_cast<std::size_t>(rank);
      spec.local_rank += before ? 1 : 0;
      ++spec.local_count;
      if (places_[r].processors != place.processors) continue;
      share.place += before ? 1 : 0;
      ++share.sharers;
    }
    spec.shares_processors = share.sharers > 1 && case_.run.bind == "none";
    spec.host_name = place.host;
    spec.service = crew_.endpoint();
    spec.prefix = prefix_;
    spec.wireup_timeout = case_.run.wireup_timeout;
    spec.collective_timeout = case_.run.stall_timeout.count() > 0 ? case_.run.stall_timeout : case_.measure.timeout;
    const std::int32_t devices = std::max(device_count, 1);
    const std::int32_t local_rank = place.local_rank >= 0 ? place.local_rank : spec.local_rank;
    WorkerOrder order = make_order(case_, device_kind, context_, spec, device_kind == "cpu" ? 0 : local_rank % devices);
    order.share = share;
    return order;
  }

  void abort_others(const std::string& why) {
    if (!remote_.empty()) crew_.store().set(prefix_ + "abort", why);
  }

  std::optional<RankReport> find(std::int32_t rank) {
    if (auto report = crew_.find_report(rank, prefix_)) return report;
    return crew_.find_loss(rank);
  }

  std::optional<std::string> failure_elsewhere() {
    for (const std::int32_t rank : remote_)
      if (const auto report = find(rank); report && report->part.value("status", "") != "ok")
        return named_reason(*report);
    return std::nullopt;
  }

  // The reports of the ranks elsewhere. Those ranks have deadlines of their own, on their machines; a machine that is
  // lost is a report, too. False: interrupted.
  bool collect(std::vector<RankReport>& reports, bool failed) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::int32_t> open = remote_;
    while (!open.empty()) {
      if (context_.interrupts.count()->load() > 0) return abort_others("the run was interrupted"), false;
      std::erase_if(open, [&](std::int32_t rank) {
        auto report = find(rank);
        if (report) reports.push_back(std::move(*report));
        return report.has_value();
      });
      if (open.empty()) break;
      if (!failed && std::any_of(reports.begin(), reports.end(),
                                 [](const RankReport& report) { return report.part.value("status", "") != "ok"; })) {
        failed = true;
        abort_others("another rank failed");
      }
      const milliseconds patience = failed ? late_reports : case_.measure.timeout + late_reports;
      if (std::chrono::steady_clock::now() - begin > patience) {
        for (const std::int32_t rank : open) reports.push_back(silent_follower(rank));
        break;
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
    std::sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return true;
  }

  RankReport silent_follower(std::int32_t rank) const {
    const std::string& host = places_[static_cast<std::size_t>(rank)].host;
    return {rank,
            host,
            {{"status", "timeout"},
             {"reason", "its assay process has not reported the end of the case"},
             {"stage", "load"},
             {"phase", ""}},
            FailureKind::overdue};
  }

  const Case& case_;
  const CaseContext& context_;
  Crew& crew_;
  const std::string prefix_;
  const std::vector<RankPlace> places_;
  std::vector<std::int32_t> remote_;
};

}  // namespace

RankCount rank_count_of(const Case& c, const Crew& crew, const std::string& device_kind, std::int32_t device_count,
                        bool in_process) {
  RankCount ranks;
  if (c.run.ranks == ranks_auto)
    ranks.count = crew.size();
  else if (c.run.ranks == ranks_all)
    ranks.count = crew.is_launched()     ? crew.size()
                  : device_kind == "cpu" ? cpu_node_count()
                                         : std::max(device_count, 1);
  else
    ranks.count = static_cast<std::int32_t>(c.run.ranks);
  if (crew.is_launched() && ranks.count > crew.size())
    ranks.refusal =
        fmt::format("run.ranks: {} ranks were asked for, but {} started {}; start as many, or lower run.ranks",
                    ranks.count, crew.launcher(), crew.size());
  else if (ranks.count > 1 && (in_process || !c.run.isolate))
    ranks.refusal = "run.ranks: several ranks need a worker process each; leave out --in-process and isolate = false";
  return ranks;
}

CaseOutcome run_ranks(const Case& c, std::int32_t count, const std::string& device_kind, std::int32_t device_count,
                      const CaseContext& context, Crew& crew) {
  return RankedCase(c, count, context, crew).run(device_kind, device_count);
}

}  // namespace assay::host
