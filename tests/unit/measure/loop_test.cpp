#include "measure/loop.hpp"

#include "measure/instruments.hpp"

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
  int warmups_seen = 0, after_steps = 0;
  std::vector<double> preparation_ns;  // what the steps after prepare_window take longer
  double others_ns = 0;                // another rank's time of each step; 0: there is none
  bool flushes = false;
  std::vector<std::uint64_t> flushed_at;                    // the steps that followed
  std::vector<std::uint64_t> prepared_at, begun_at;         // the steps that followed
  std::vector<std::pair<std::uint64_t, double>> chosen_at;  // likewise, and the step's time
  std::int64_t begun_at_ns = 0, measures_at_ns = 0;

  LoopResult run(const MeasurePlan& plan) {
    LoopHooks hooks;
    hooks.run_step = [&](std::uint64_t iteration, bool warmup) {
      if (!begun_at.empty() && iterations.size() == begun_at.back()) measures_at_ns = timeline.host_now_ns();
      iterations.push_back(iteration);
      warmups_seen += warmup ? 1 : 0;
      const std::size_t i = std::min<std::size_t>(iteration, step_times_ns.size() - 1);
      recorder.phase_begin(0);
      timeline.host_work(1);
      const std::uint64_t since = prepared_at.empty() ? preparation_ns.size() : iteration - prepared_at.back();
      timeline.device_work(step_times_ns[i] + (since < preparation_ns.size() ? preparation_ns[since] : 0));
      recorder.phase_end(0);
    };
    hooks.after_step = [&](bool, std::int64_t, std::int64_t) { ++after_steps; };
    hooks.choose_events = [&](double step_ns) { chosen_at.emplace_back(iterations.size(), step_ns); };
    hooks.prepare_window = [&] { prepared_at.push_back(iterations.size()); };
    hooks.begin_window = [&] {
      begun_at.push_back(iterations.size());
      begun_at_ns = timeline.host_now_ns();
    };
    if (flushes)
      hooks.flush_caches = [&] {
        flushed_at.push_back(iterations.size());
        timeline.device_work(1e6);
      };
    if (others_ns > 0) {
      hooks.slowest = [&](std::span<const double> mine) {
        std::vector<double> slowest(mine.begin(), mine.end());
        for (double& ns : slowest) ns = std::max(ns, others_ns);
        return slowest;
      };
      hooks.agree = [](Verdict mine) { return mine; };
    }
    return measure(timeline, recorder, plan, hooks);
  }
};

TEST(Loop, WarmUpIsNotMeasured) {
  Harness h{.step_times_ns = {9000, 9000, 100}};
  const LoopResult r = h.run({.warmup = 5, .steps = 3});
  EXPECT_EQ(h.warmups_seen, 5);
  EXPECT_EQ(h.begun_at, (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(h.iterations, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
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
  EXPECT_EQ(h.timeline.synchronizations(), 4);  // around empty samples and the host's own work, and after the window
}

TEST(Loop, StopsWhenTheMeanIsKnown) {
  Harness h{.step_times_ns = {1000}};
  MeasurePlan plan{.warmup = 0};
  plan.until = StoppingRule{0.01, 0.95, 5, 100};
  const LoopResult r = h.run(plan);
  EXPECT_EQ(r.verdict, Verdict::enough);
  EXPECT_EQ(r.samples.step_ns.size(), 24u);  // the first look after the twenty that the rule wants
}

TEST(Loop, UnsynchronisedUntilAlsoStops) {
  Harness h{.step_times_ns = {1000}};
  MeasurePlan plan{.warmup = 0, .sync = false};
  plan.until = StoppingRule{0.01, 0.95, 5, 100};
  EXPECT_EQ(h.run(plan).samples.step_ns.size(), 24u);
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

// What the host does before the window makes the step after it slow. That step is one of the warm-up.
TEST(Loop, TheStepAfterTheHostsOwnWorkIsNotMeasured) {
  for (const bool sync : {true, false}) {
    Harness h{.step_times_ns = {9000, 100}, .preparation_ns = {500}};
    const LoopResult r = h.run({.warmup = 5, .steps = 3, .sync = sync});
    EXPECT_EQ(h.prepared_at, (std::vector<std::uint64_t>{1})) << "sync " << sync;
    EXPECT_EQ(h.begun_at, (std::vector<std::uint64_t>{5}));
    EXPECT_EQ(r.settling_steps, 4);
    EXPECT_EQ(r.samples.step_device_ns, (std::vector<double>{100, 100, 100}));
    EXPECT_EQ(r.iterations, 8u);  // no more than the plan has
  }
}

// The queue does not run empty between the settling steps and the measured ones.
TEST(Loop, SettlingStepsOfUnreadOnesAreNotWaitedFor) {
  Harness h{.step_times_ns = {100}};
  h.run({.warmup = 5, .steps = 3, .sync = false});
  EXPECT_EQ(h.timeline.synchronizations(), 4);  // the first step, around empty samples, the end
}

// A warm-up of one step, as a quick start has it, leaves none that could settle: they are added.
TEST(Loop, AShortWarmUpIsMadeLonger) {
  for (const std::int64_t warmup : {1, 2, 3, 4})
    for (const bool sync : {true, false}) {
      Harness h{.step_times_ns = {9000, 100}, .preparation_ns = {500, 500, 500}};
      const LoopResult r = h.run({.warmup = warmup, .steps = 3, .sync = sync});
      EXPECT_EQ(h.prepared_at, (std::vector<std::uint64_t>{1})) << "warmup " << warmup << " sync " << sync;
      EXPECT_EQ(h.begun_at, (std::vector<std::uint64_t>{5}));
      EXPECT_EQ(r.settling_steps, 4);
      EXPECT_EQ(h.warmups_seen, 5);
      EXPECT_EQ(r.samples.step_device_ns, (std::vector<double>{100, 100, 100}));
      EXPECT_EQ(r.iterations, 8u);
    }
}

// By what the warm-up's step took, here more than it may be.
TEST(Loop, AWarmUpOfLongStepsIsNotMadeLonger) {
  for (const auto& [step_ns, settling] : {std::pair(20e6, 2), std::pair(60e6, 0)}) {
    Harness h{.step_times_ns = {step_ns}};
    EXPECT_EQ(h.run({.warmup = 1, .steps = 2}).settling_steps, settling);
  }
}

TEST(Loop, ForAsLongAsTimesFallTheyAreNotMeasured) {
  Harness h{.step_times_ns = {9000, 100}, .preparation_ns = {6400, 3200, 1600, 800, 400, 200, 100, 50}};
  const LoopResult r = h.run({.warmup = 1});
  EXPECT_EQ(r.settling_steps, 10) << "eight that were slow, and two that were not shorter by a tenth each";
  for (const double ns : r.samples.step_device_ns) EXPECT_EQ(ns, 100);
}

TEST(Loop, TimesThatAlwaysFallAreMeasuredInTheEnd) {
  Harness h;
  for (double ns = 1e5; h.step_times_ns.size() < 100; ns *= 0.85) h.step_times_ns.push_back(ns);
  EXPECT_EQ(h.run({.warmup = 5}).settling_steps, 20);
  Harness of_long_steps{.step_times_ns = {8e6, 32e6, 24e6, 16e6, 8e6, 4e6}};
  EXPECT_EQ(of_long_steps.run({.warmup = 3}).settling_steps, 4) << "50 ms are over";
}

// One that is measured twice takes as many steps both times, whatever their times are.
TEST(Loop, AWarmUpThatIsLongEnoughIsAllThatAPlanWithACountTakes) {
  Harness h{.step_times_ns = {9000, 100}, .preparation_ns = {6400, 3200, 1600, 800, 400, 200, 100, 50}};
  EXPECT_EQ(h.run({.warmup = 5, .steps = 3}).iterations, 8u);
}

// Other ranks wait for a look, and the step after it would be slow for that: so many and no more.
TEST(Loop, RanksAddAsManyEach) {
  Harness h{.step_times_ns = {100}, .preparation_ns = {6400, 3200, 1600, 800, 400, 200, 100, 50}, .others_ns = 20e6};
  EXPECT_EQ(h.run({.warmup = 1, .steps = 2}).settling_steps, 2);
  Harness without_count{
      .step_times_ns = {100}, .preparation_ns = {6400, 3200, 1600, 800, 400, 200, 100, 50}, .others_ns = 1000};
  EXPECT_EQ(without_count.run({.warmup = 1}).settling_steps, 4);
}

// The energy of the window is that of these steps, too.
TEST(Loop, StepsAfterALookAreCounted) {
  for (const bool sync : {true, false}) {
    Harness h{.step_times_ns = {1000}, .others_ns = 1000};
    const LoopResult r = h.run({.warmup = 5, .sync = sync, .inner = 3});
    const auto recorded = static_cast<std::int64_t>(r.samples.step_ns.size()) * r.inner;
    EXPECT_GT(r.unrecorded_steps, 0) << sync;
    EXPECT_EQ(static_cast<std::int64_t>(r.iterations - r.iterations_before_window), recorded + r.unrecorded_steps);
  }
  Harness counted{.step_times_ns = {1000}, .others_ns = 1000};
  EXPECT_EQ(counted.run({.warmup = 5, .steps = 30}).unrecorded_steps, 0) << "nobody looks before the end";
}

// By the device's time of the fastest step so far, and with steps left on which the choice settles.
TEST(Loop, EventsAreChosenBeforeStepsThatSettle) {
  using Chosen = std::vector<std::pair<std::uint64_t, double>>;
  for (const bool sync : {true, false}) {
    Harness h{.step_times_ns = {9000, 100}};
    h.run({.warmup = 5, .steps = 3, .sync = sync});
    EXPECT_EQ(h.chosen_at, (Chosen{{1, 9000}}));
    Harness long_warm_up{.step_times_ns = {9000, 100}};
    long_warm_up.run({.warmup = 30, .steps = 3, .sync = sync});
    EXPECT_EQ(long_warm_up.chosen_at, (Chosen{{10, 100}}));
  }
  Harness without_warm_up{.step_times_ns = {100}};
  without_warm_up.run({.warmup = 0, .steps = 3});
  EXPECT_EQ(without_warm_up.chosen_at, Chosen{});
  Harness of_long_steps{.step_times_ns = {60e6}};
  of_long_steps.run({.warmup = 2, .steps = 2});
  EXPECT_EQ(of_long_steps.chosen_at, Chosen{}) << "no step is left";
}

TEST(Loop, AtMostTwentyStepsSettle) {
  Harness h{.step_times_ns = {100}};
  EXPECT_EQ(h.run({.warmup = 50, .steps = 3}).settling_steps, 20);
}

// A long step does not notice, and telemetry and energy are to be those of the measured steps.
TEST(Loop, LongStepsNeedNoSettling) {
  for (const auto& [step_ns, settling] : {std::pair(20e6, 2), std::pair(60e6, 0)}) {
    Harness h{.step_times_ns = {step_ns}};
    EXPECT_EQ(h.run({.warmup = 5, .steps = 2}).settling_steps, settling);
  }
}

TEST(Loop, WithoutWarmUpNothingSettles) {
  Harness h{.step_times_ns = {9000, 100}};
  EXPECT_EQ(h.run({.warmup = 0, .steps = 2}).settling_steps, 0);
}

// Every rank takes as many steps after the meeting, whatever its own times are.
TEST(Loop, TheSlowestRanksTimesDecideWhatSettles) {
  Harness h{.step_times_ns = {100}, .others_ns = 20e6};
  EXPECT_EQ(h.run({.warmup = 5, .steps = 2}).settling_steps, 2);
}

TEST(Loop, WithoutACountShortStepsAreFifty) {
  Harness h{.step_times_ns = {100}};
  EXPECT_EQ(h.run({.warmup = 1}).samples.step_ns.size(), 50u);
}

TEST(Loop, WithoutACountHalfASecondIsMeasured) {
  for (const bool sync : {true, false}) {
    Harness h{.step_times_ns = {30e6}};
    EXPECT_EQ(h.run({.warmup = 1, .sync = sync}).samples.step_ns.size(), 17u);  // looks at 10, 13 and 17
  }
}

TEST(Loop, WithoutACountLongStepsAreTen) {
  Harness h{.step_times_ns = {5e9}};
  EXPECT_EQ(h.run({.warmup = 1}).samples.step_ns.size(), 10u);
}

TEST(Loop, WithoutACountTheSlowestRankDecides) {
  Harness h{.step_times_ns = {100}, .others_ns = 60e6};
  EXPECT_EQ(h.run({.warmup = 1}).samples.step_ns.size(), 10u);
}

TEST(Loop, ASampleOfSeveralStepsIsTheTimeOfOne) {
  for (const bool sync : {true, false}) {
    Harness h{.step_times_ns = {1000}};
    const LoopResult r = h.run({.warmup = 1, .steps = 3, .sync = sync, .inner = 8});
    EXPECT_EQ(r.samples.step_ns, (std::vector<double>{1000, 1000, 1000})) << "sync " << sync;
    EXPECT_EQ(r.iterations, 5u + 3 * 8);
    EXPECT_EQ(r.inner, 8);
  }
}

// What the wait costs is shared by the steps of a sample.
TEST(Loop, SeveralStepsShareTheWait) {
  Harness h{.step_times_ns = {1000}};
  h.timeline.let_instruments_cost(0, 800);
  EXPECT_EQ(h.run({.warmup = 1, .steps = 1}).samples.step_ns.front(), 1801);  // and 1 to enqueue it
  Harness of_eight{.step_times_ns = {1000}};
  of_eight.timeline.let_instruments_cost(0, 800);
  EXPECT_EQ(of_eight.run({.warmup = 1, .steps = 1, .inner = 8}).samples.step_ns.front(), 8801.0 / 8);
}

TEST(Loop, WhatAnEmptySampleTakesIsTold) {
  Harness h{.step_times_ns = {1000}};
  h.timeline.let_instruments_cost(100, 800);
  EXPECT_EQ(h.run({.warmup = 1, .steps = 1}).instrument_ns, 1000);
}

// Nothing rests between what the host does at the window's beginning and the first measured step.
TEST(Loop, TheInstrumentsAreRehearsedRightBeforeTheFirstMeasuredStep) {
  Harness h{.step_times_ns = {1000}};
  h.timeline.let_instruments_cost(100, 800);
  const LoopResult r = h.run({.warmup = 1, .steps = 2});
  // A step's first mark comes before the step.
  EXPECT_EQ(h.measures_at_ns - h.begun_at_ns, rehearsals * (2 * 100 + 800) + 100);
  EXPECT_EQ(r.samples.step_ns.size(), 2u);
  EXPECT_EQ(r.samples.step_device_ns.size(), 2u);
}

TEST(Loop, AutoTakesAsManyStepsAsMakeTheInstrumentsSmall) {
  Harness h{.step_times_ns = {1000}};
  h.timeline.let_instruments_cost(100, 800);
  const LoopResult r = h.run({.warmup = 1, .steps = 3, .inner = inner_auto});
  EXPECT_GE(static_cast<double>(r.inner) * 1000, 100 * r.instrument_ns * 0.9);
  EXPECT_LE(static_cast<double>(r.inner) * 1000, 3 * 100 * r.instrument_ns);
  Harness of_long_steps{.step_times_ns = {1e9}};
  EXPECT_EQ(of_long_steps.run({.warmup = 1, .steps = 3, .inner = inner_auto}).inner, 1);
  Harness of_nothing{.step_times_ns = {0}};
  EXPECT_EQ(of_nothing.run({.warmup = 1, .steps = 1, .inner = inner_auto}).inner, most_inner_steps);
}

// All ranks take as many: by the dearest instruments and the slowest steps of them.
TEST(Loop, AutoGoesByAllRanks) {
  Harness h{.step_times_ns = {1000}, .others_ns = 50'000};
  const LoopResult r = h.run({.warmup = 1, .steps = 3, .inner = inner_auto});
  EXPECT_GE(static_cast<double>(r.inner) * 1000, 100 * 50'000);
}

TEST(Loop, CachesAreFlushedBeforeEachStepAndOutsideItsTime) {
  for (const bool sync : {true, false}) {
    Harness h{.step_times_ns = {1000}, .flushes = true};
    const LoopResult r = h.run({.warmup = 1, .steps = 2, .sync = sync});
    EXPECT_EQ(h.flushed_at, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6})) << "four settle";
    EXPECT_EQ(r.samples.step_ns, (std::vector<double>{1000, 1000})) << "sync " << sync;
  }
}

TEST(Loop, AFailingStepEndsIt) {
  Harness h{.step_times_ns = {1}};
  LoopHooks hooks;
  hooks.run_step = [](std::uint64_t iteration, bool) {
    if (iteration == 1) throw std::runtime_error("boom");
  };
  hooks.after_step = [](bool, std::int64_t, std::int64_t) {};
  hooks.prepare_window = hooks.begin_window = [] {};
  EXPECT_THROW(measure(h.timeline, h.recorder, {.warmup = 0, .steps = 5}, hooks), std::runtime_error);
}

TEST(Loop, ThePoolOfMarksDoesNotGrowInTheWindow) {
  Harness h{.step_times_ns = {100}};
  h.run({.warmup = 2, .steps = 50});
  EXPECT_EQ(h.timeline.reservations(), 1);
}

}  // namespace
}  // namespace assay::host::measure
