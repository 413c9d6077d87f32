#include "measure/loop.hpp"

#include <algorithm>

namespace assay::host::measure {
namespace {

// One step with a synchronisation: the user's view of a step, from the call to the last result.
double synchronized_step(Timeline& timeline, Recorder& recorder, const LoopHooks& hooks, std::uint64_t iteration,
                         bool warmup) {
  const std::int64_t begin_ns = timeline.host_now_ns();
  recorder.begin_step();
  hooks.run_step(iteration, warmup);
  recorder.end_step();
  timeline.synchronize();
  const auto elapsed_ns = static_cast<double>(timeline.host_now_ns() - begin_ns);
  recorder.set_step_ns(elapsed_ns);
  return elapsed_ns;
}

// The verdict over the step times of all ranks.
class SharedVerdict {
 public:
  SharedVerdict(const MeasurePlan& plan, const LoopHooks& hooks) : plan_(plan), hooks_(hooks) {
    if (plan.until) agreed_ns_.reserve(static_cast<std::size_t>(plan.most_steps()));
  }

  // `step_ns`: of all steps measured so far on this rank.
  Verdict judge(std::span<const double> step_ns) {
    if (!plan_.until || !hooks_.slowest) return measure::judge(plan_, step_ns);
    if (static_cast<std::int64_t>(step_ns.size()) < plan_.until->min_steps) return Verdict::go_on;  // everywhere
    const std::vector<double> slowest_ns = hooks_.slowest(step_ns.subspan(agreed_ns_.size()));
    agreed_ns_.insert(agreed_ns_.end(), slowest_ns.begin(), slowest_ns.end());
    return hooks_.agree(measure::judge(plan_, agreed_ns_));
  }

 private:
  const MeasurePlan& plan_;
  const LoopHooks& hooks_;
  std::vector<double> agreed_ns_;
};

}  // namespace

LoopResult measure(Timeline& timeline, Recorder& recorder, const MeasurePlan& plan, const LoopHooks& hooks) {
  std::uint64_t iteration = 0;
  recorder.prepare(std::max<std::int64_t>(1, std::max(plan.warmup, plan.most_steps())), plan.sync);

  for (std::int64_t i = 0; i < plan.warmup; ++i) {
    synchronized_step(timeline, recorder, hooks, iteration++, true);
    recorder.flush();
    hooks.after_step(true, i + 1, plan.warmup);
  }
  recorder.discard();
  timeline.synchronize();
  hooks.after_warmup();

  LoopResult result;
  std::vector<double> step_ns;
  step_ns.reserve(static_cast<std::size_t>(plan.most_steps()));
  const std::int64_t total = plan.until ? 0 : plan.steps;
  const std::int64_t window_begin_ns = timeline.host_now_ns();
  std::int64_t done = 0;
  SharedVerdict verdict(plan, hooks);
  while ((result.verdict = verdict.judge(step_ns)) == Verdict::go_on) {
    if (plan.sync) {
      step_ns.push_back(synchronized_step(timeline, recorder, hooks, iteration++, false));
      recorder.flush();
      hooks.after_step(false, ++done, total);
      continue;
    }
    // Unsynchronised steps follow each other without a look at the device; their times are known after the batch.
    const std::int64_t batch = plan.until ? std::min(plan.until->min_steps, plan.until->max_steps - done) : plan.steps;
    for (std::int64_t i = 0; i < batch; ++i) {
      recorder.begin_step();
      hooks.run_step(iteration++, false);
      recorder.end_step();
      hooks.after_step(false, ++done, total);
    }
    timeline.synchronize();
    recorder.flush();
    step_ns = recorder.step_device_ns();
  }
  result.window_s = static_cast<double>(timeline.host_now_ns() - window_begin_ns) * 1e-9;
  result.samples = recorder.take();
  return result;
}

}  // namespace assay::host::measure
