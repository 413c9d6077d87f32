// The phases of a captured step are timed by events that are part of it, and each event takes time: 2.5 to 3.5 us on an
// H200. Where they would take a noticeable part of a step, the measured steps do without them, and steps after these
// give the phases.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure/loop.hpp"
#include "record/case_record.hpp"
#include "worker/graph_events.hpp"

namespace assay::host::worker {

// Of a step: what events may take, and stay in it.
inline constexpr double most_share_of_events = 0.005;

struct PhaseHooks {
  std::function<void(std::uint64_t step)> run_step;  // enqueues one
  std::function<void()> after_step;
  std::function<void()> begin;         // once, before the first of them that is timed, and before those that settle
  std::function<void()> flush_caches;  // before each step, as before the measured ones; or empty
};

struct TimedPhases {
  measure::Samples samples;  // the step in them is that of the pass
  record::PhasePass pass;
  std::uint64_t steps_run = 0;
};

class PhasePass {
 public:
  // Of some numbers of this rank, the largest that any rank has; empty without other ranks.
  using LargestOfRanks = std::function<std::vector<double>(std::span<const double> mine)>;

  // `may_follow`: the workload takes steps after the measured ones.
  PhasePass(measure::Recorder& recorder, GraphEvents events, LargestOfRanks largest, bool may_follow)
      : recorder_(recorder), events_(std::move(events)), largest_(std::move(largest)), may_follow_(may_follow) {}

  // Before the steps that settle: whether the steps from here on do without events. All ranks call it, and have the
  // same answer. `step_ns`: of a step with its events, on this rank.
  void choose(double step_ns);
  // A separate pass gives the phases.
  bool is_apart() const { return is_apart_; }
  // Only where it is: of the steps that follow, for a trace or a pass.
  void record_events(bool on);

  // As many steps as there are measured samples, but no longer than a few seconds, each waited for. All ranks take as
  // many. Afterwards steps are again as they were measured.
  TimedPhases take(measure::Timeline& timeline, measure::MeasurePlan plan, const measure::LoopResult& measured,
                   const PhaseHooks& hooks);

  // For the record: that the phases come from separate steps, or that their events are a part of the measured steps. ""
  // if there is nothing to say.
  std::string note(const measure::LoopResult& measured, const record::PhasePass* pass) const;

 private:
  double event_ns() const { return events_.ns_of_each(static_cast<std::int64_t>(recorder_.captured_events())); }
  double events_ns() const { return event_ns() * static_cast<double>(recorder_.captured_events()); }

  measure::Recorder& recorder_;
  GraphEvents events_;
  LargestOfRanks largest_;
  bool may_follow_;
  bool is_apart_ = false;
};

}  // namespace assay::host::worker
