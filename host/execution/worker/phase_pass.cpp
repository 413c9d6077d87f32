#include "worker/phase_pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "measure/statistics.hpp"

namespace assay::host::worker {
namespace {

constexpr double longest_phase_pass_s = 5;
// This form of the graph was last replayed before the window.
constexpr std::int64_t unrecorded_phase_steps = 3;

double mean_step_ns(const measure::Samples& samples) { return measure::summarize(samples.step_ns).mean; }

}  // namespace

void PhasePass::choose(double step_ns) {
  const bool can = may_follow_ && events_.record;
  const std::array<double, 3> mine{step_ns, events_ns(), can ? 0.0 : 1.0};
  const std::vector<double> all = largest_ ? largest_(mine) : std::vector<double>(mine.begin(), mine.end());
  const bool all_can = all[2] == 0;
  is_apart_ = all_can && all[1] > most_share_of_events * all[0];
  if (is_apart_) record_events(false);
}

void PhasePass::record_events(bool on) {
  if (!is_apart_) return;
  events_.record(on);
  recorder_.leave_out_captured(!on);
}

TimedPhases PhasePass::take(measure::Timeline& timeline, measure::MeasurePlan plan, const measure::LoopResult& measured,
                            const PhaseHooks& phases) {
  const double own_step_s = mean_step_ns(measured.samples) * 1e-9;
  const double step_s = largest_ ? largest_(std::span(&own_step_s, 1)).front() : own_step_s;
  const auto most = static_cast<double>(measured.samples.step_ns.size());
  plan.until.reset();
  plan.steps = static_cast<std::int64_t>(std::clamp(longest_phase_pass_s / step_s, 1.0, most));
  // There is one set of events for all replays: each is read before the next.
  plan.sync = true;
  plan.inner = 1;
  plan.warmup = unrecorded_phase_steps;
  measure::LoopHooks hooks;
  hooks.run_step = [&](std::uint64_t step, bool) { phases.run_step(step); };
  hooks.after_step = [&](bool, std::int64_t, std::int64_t) { phases.after_step(); };
  hooks.prepare_window = phases.begin;
  hooks.begin_window = [] {};
  hooks.flush_caches = phases.flush_caches;
  hooks.slowest = largest_;
  record_events(true);
  measure::LoopResult result = measure::measure(timeline, recorder_, plan, hooks);
  record_events(false);
  TimedPhases timed;
  timed.pass.steps = static_cast<std::int64_t>(result.samples.step_ns.size());
  timed.pass.step_mean_ms = mean_step_ns(result.samples) * 1e-6;
  timed.pass.events = recorder_.captured_events();
  timed.pass.event_us = event_ns() * 1e-3;
  timed.samples = std::move(result.samples);
  timed.steps_run = result.iterations;
  return timed;
}

std::string PhasePass::note(const measure::LoopResult& measured, const record::PhasePass* pass) const {
  const double step_ns = mean_step_ns(measured.samples);
  const double share = events_ns() / step_ns;
  const auto count = static_cast<std::int64_t>(recorder_.captured_events());
  const std::string events =
      fmt::format("the {} events that time the phases of a captured step take about {:.0f} us{}", count,
                  events_ns() * 1e-3, events_.is_measured(count) ? "" : " (as on an H200: not known of this device)");
  if (pass)
    return fmt::format(
        "phases come from {} separate steps after the measured ones, of {:.4g} ms each: {}, {:.1f}% "
        "of a measured step, which is captured without them",
        pass->steps, pass->step_mean_ms.value_or(record::no_number), events, share * 100);
  if (is_apart_ || !(share > most_share_of_events)) return "";
  return fmt::format(
      "{}, {:.1f}% of the measured step{}", events, share * 100,
      may_follow_ && events_.record ? "; set [measure] warmup = 5 to have the phases timed in separate steps" : "");
}

}  // namespace assay::host::worker
