#include "measure/loop.hpp"

#include <algorithm>

namespace assay::host {
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
  while ((result.verdict = judge(plan, step_ns)) == Verdict::go_on) {
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

}  // namespace assay::host
