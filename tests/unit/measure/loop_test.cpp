#include "measure/loop.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "scripted_timeline.hpp"

namespace assay::host::measure {
namespace {

using testing::ScriptedTimeline;

struct Harness {
  ScriptedTimeline timeline;
  Recorder recorder{timeline, 1, 0};
  std::vector<double> step_times_ns;  // the last one repeats
  std::vector<std::uint64_t> iterations;
  int warmups_seen = 0, warmup_ends = 0, after_steps = 0;

  LoopResult run(const MeasurePlan& plan) {
    LoopHooks hooks;
    hooks.run_step = [&](std::uint64_t iteration, bool warmup) {
      iterations.push_back(iteration);
      warmups_seen += warmup ? 1 : 0;
      const std::size_t i = std::min<std::size_t>(iteration, step_times_ns.size() - 1);
      recorder.phase_begin(0);
      timeline.host_work(1);
      timeline.device_work(step_times_ns[i]);
      recorder.phase_end(0);
    };
    hooks.after_step = [&](bool, std::int64_t, std::int64_t) { ++after_steps; };
    hooks.after_warmup = [&] { ++warmup_ends; };
    return measure(timeline, recorder, plan, hooks);
  }
};

TEST(Loop, WarmUpIsNotMeasured) {
  Harness h{.step_times_ns = {9000, 9000, 100}};
  const LoopResult r = h.run({.warmup = 2, .steps = 3});
  EXPECT_EQ(h.warmups_seen, 2);
  EXPECT_EQ(h.warmup_ends, 1);
  EXPECT_EQ(h.iterations, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(r.samples.step_device_ns, (std::vector<double>{100, 100, 100}));
  EXPECT_EQ(r.samples.step_ns.size(), 3u);
}

TEST(Loop, WithoutWarmUpTheColdStepIsASample) {
  Harness h{.step_times_ns = {9000, 100}};
  EXPECT_EQ(h.run({.warmup = 0, .steps = 2}).samples.step_device_ns, (std::vector<double>{9000, 100}));
}

TEST(Loop, SynchronisedStepsIncludeTheWait) {
  Harness h{.step_times_ns = {1000}};
  const LoopResult r = h.run({.warmup = 1, .steps = 2});
  EXPECT_EQ(r.samples.step_ns, (std::vector<double>{1000, 1000}));
  EXPECT_EQ(r.samples.enqueue_ns, (std::vector<double>{1, 1}));
}

TEST(Loop, UnsynchronisedStepsAreTimedOnTheDevice) {
  Harness h{.step_times_ns = {1000}};
  const LoopResult r = h.run({.warmup = 0, .steps = 4, .sync = false});
  EXPECT_EQ(r.samples.step_ns, (std::vector<double>{1000, 1000, 1000, 1000}));
  EXPECT_EQ(h.timeline.synchronizations(), 2);  // once before the window, once after it
}

TEST(Loop, StopsWhenTheMeanIsKnown) {
  Harness h{.step_times_ns = {1000}};
  MeasurePlan plan{.warmup = 0};
  plan.until = StoppingRule{0.01, 0.95, 5, 100};
  const LoopResult r = h.run(plan);
  EXPECT_EQ(r.verdict, Verdict::enough);
  EXPECT_EQ(r.samples.step_ns.size(), 5u);
}

TEST(Loop, UnsynchronisedUntilAlsoStops) {
  Harness h{.step_times_ns = {1000}};
  MeasurePlan plan{.warmup = 0, .sync = false};
  plan.until = StoppingRule{0.01, 0.95, 5, 100};
  EXPECT_EQ(h.run(plan).samples.step_ns.size(), 5u);
}

TEST(Loop, GivesUpAndSaysSo) {
  Harness h;
  for (int i = 0; i < 20; ++i) h.step_times_ns.push_back(i % 2 ? 100 : 10'000);
  MeasurePlan plan{.warmup = 0};
  plan.until = StoppingRule{0.001, 0.95, 2, 20};
  const LoopResult r = h.run(plan);
  EXPECT_EQ(r.verdict, Verdict::gave_up);
  EXPECT_EQ(r.samples.step_ns.size(), 20u);
}

TEST(Loop, AFailingStepEndsIt) {
  Harness h{.step_times_ns = {1}};
  LoopHooks hooks;
  hooks.run_step = [](std::uint64_t iteration, bool) {
    if (iteration == 1) throw std::runtime_error("boom");
  };
  hooks.after_step = [](bool, std::int64_t, std::int64_t) {};
  hooks.after_warmup = [] {};
  EXPECT_THROW(measure(h.timeline, h.recorder, {.warmup = 0, .steps = 5}, hooks), std::runtime_error);
}

TEST(Loop, ThePoolOfMarksDoesNotGrowInTheWindow) {
  Harness h{.step_times_ns = {100}};
  h.run({.warmup = 2, .steps = 50});
  EXPECT_EQ(h.timeline.reservations(), 1);
}

}  // namespace
}  // namespace assay::host::measure
