// When the phases of a captured step are timed in separate steps, and how these are taken.
#include "worker/phase_pass.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "measure/scripted_timeline.hpp"

namespace assay::host::worker {
namespace {

// A step of 100 us on the device, of whose two phases the first takes 30 us. Its events take time where they are
// recorded.
struct Captured {
  measure::testing::ScriptedTimeline timeline;
  measure::Recorder recorder{timeline, 2, 0};
  double event_ns = 2500;
  experiment::DeviceFacts facts{};
  bool has_switch = true, may_follow = true;
  PhasePass::LargestOfRanks largest = {};
  std::vector<bool> switched = {};
  std::vector<std::uint64_t> steps = {};
  int begun = 0, after_steps = 0, flushed = 0;

  PhasePass make() {
    recorder.prepare(8, true);
    recorder.begin_capture();
    for (const std::uint32_t phase : {0u, 1u}) {
      recorder.phase_begin(phase);
      timeline.device_work(phase == 0 ? 30e3 : 70e3);
      recorder.phase_end(phase);
    }
    recorder.end_capture();
    GraphEvents events{event_ns, {}, facts};
    if (has_switch) events.record = [this](bool on) { switched.push_back(on); };
    return PhasePass(recorder, std::move(events), largest, may_follow);
  }
  void step() {
    timeline.device_work(100e3 + (recorder.leaves_out_captured() ? 0 : 4 * event_ns));
    recorder.replayed();
  }
  TimedPhases take(PhasePass& pass, const measure::MeasurePlan& plan, std::size_t samples, double measured_ns) {
    measure::LoopResult measured;
    measured.samples.step_ns.assign(samples, measured_ns);
    PhaseHooks hooks;
    hooks.run_step = [&](std::uint64_t at) {
      steps.push_back(at);
      step();
    };
    hooks.after_step = [&] { ++after_steps; };
    hooks.begin = [&] { ++begun; };
    if (plan.cold_cache) hooks.flush_caches = [&] { ++flushed; };
    return pass.take(timeline, plan, measured, hooks);
  }
};

// Four events of 2.5 us are 0.5% of 2 ms.
TEST(PhasePass, IsForStepsOfWhichEventsTakeMoreThanOneInTwoHundred) {
  for (const auto& [step_ns, apart] : {std::pair(1.99e6, true), std::pair(2e6, false), std::pair(8e6, false)}) {
    Captured captured;
    PhasePass pass = captured.make();
    pass.choose(step_ns);
    EXPECT_EQ(pass.is_apart(), apart) << step_ns;
    EXPECT_EQ(captured.recorder.leaves_out_captured(), apart) << step_ns;
    EXPECT_EQ(captured.switched, apart ? std::vector<bool>{false} : std::vector<bool>{}) << step_ns;
  }
}

// On an H100 a thousand events in a graph take 3.5 us each, a few 2.5: its file says both.
TEST(PhasePass, GoesByTheDevicesFile) {
  const GraphEvents stated{2500, {}};
  EXPECT_EQ(stated.ns_of_each(1000), 2500);
  EXPECT_FALSE(stated.is_measured(1000));
  GraphEvents measured{2500, {}};
  measured.facts.event_captured_us = 2.5;
  measured.facts.event_captured_many_us = 3.5;
  EXPECT_EQ(measured.ns_of_each(10), 2500);
  EXPECT_EQ(measured.ns_of_each(1000), 3500);
  EXPECT_TRUE(measured.is_measured(1000));

  // Four events of 3 us are more than 0.5% of 2.2 ms, four of 2.5 us less.
  Captured captured;
  captured.facts.event_captured_us = 3;
  PhasePass pass = captured.make();
  pass.choose(2.2e6);
  EXPECT_TRUE(pass.is_apart());
  Captured unknown;
  PhasePass as_stated = unknown.make();
  as_stated.choose(2.2e6);
  EXPECT_FALSE(as_stated.is_apart());
}

TEST(PhasePass, IsNotForAStepThatIsNotCaptured) {
  Captured captured;
  PhasePass pass(captured.recorder, {2500, [](bool) { FAIL() << "nothing is to be switched"; }}, {}, true);
  pass.choose(1000);
  EXPECT_FALSE(pass.is_apart());
}

TEST(PhasePass, NeedsASwitchAndStepsThatMayFollow) {
  for (const bool has_switch : {false, true}) {
    Captured captured{.event_ns = has_switch ? 2500.0 : 0.0, .has_switch = has_switch, .may_follow = !has_switch};
    PhasePass pass = captured.make();
    pass.choose(1000);
    EXPECT_FALSE(pass.is_apart());
    EXPECT_FALSE(captured.recorder.leaves_out_captured());
  }
}

// A rank that answered for itself would take other steps than the others, who wait for it.
TEST(PhasePass, RanksGiveOneAnswer) {
  Captured captured;
  std::vector<double> mine;
  std::vector<double> of_another{3e6, 10e3, 0};
  captured.largest = [&](std::span<const double> own) {
    mine.assign(own.begin(), own.end());
    std::vector<double> all = mine;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], of_another[i]);
    return all;
  };
  PhasePass pass = captured.make();
  pass.choose(1e6);
  EXPECT_EQ(mine, (std::vector<double>{1e6, 10e3, 0}));
  EXPECT_FALSE(pass.is_apart()) << "of the slowest rank's 3 ms it is 0.33%";
  of_another = {1e6, 20e3, 0};
  pass.choose(3e6);
  EXPECT_TRUE(pass.is_apart()) << "another rank has twice as many events";
  Captured second;
  of_another = {1e6, 10e3, 1};
  second.largest = captured.largest;
  PhasePass with_one_that_cannot = second.make();
  with_one_that_cannot.choose(1e6);
  EXPECT_FALSE(with_one_that_cannot.is_apart()) << "another rank has no switch";
}

TEST(PhasePass, TakesAsManyStepsAsWereMeasuredAndLeavesThemAsTheyWere) {
  Captured captured;
  PhasePass pass = captured.make();
  pass.choose(100e3);
  const TimedPhases timed = captured.take(pass, {.warmup = 5, .steps = 6}, 6, 100e3);
  EXPECT_EQ(captured.switched, (std::vector<bool>{false, true, false}));
  EXPECT_TRUE(captured.recorder.leaves_out_captured());
  EXPECT_EQ(timed.pass.steps, 6);
  EXPECT_DOUBLE_EQ(timed.pass.step_mean_ms.value(), 0.110) << "with four events";
  EXPECT_EQ(timed.pass.events, 4);
  EXPECT_EQ(timed.pass.event_us, 2.5);
  EXPECT_EQ(timed.steps_run, captured.steps.size());
  EXPECT_EQ(captured.steps.size(), 6u + 5) << "one, four that settle, and those that are timed";
  EXPECT_EQ(captured.after_steps, 11);
  EXPECT_EQ(captured.begun, 1);
  ASSERT_EQ(timed.samples.phases.size(), 2u);
  EXPECT_EQ(timed.samples.phases[0].device_ns, std::vector<double>(6, 30e3));
  EXPECT_EQ(timed.samples.phases[1].device_ns, std::vector<double>(6, 70e3));
  EXPECT_EQ(captured.recorder.misuse(), "");
}

// Whatever the measured ones are: there is one set of events, which is read before the next replay.
TEST(PhasePass, ItsStepsAreWaitedForOneByOne) {
  for (const measure::MeasurePlan& plan :
       {measure::MeasurePlan{.sync = false}, measure::MeasurePlan{.until = measure::StoppingRule{}},
        measure::MeasurePlan{.steps = 4, .inner = 8}, measure::MeasurePlan{.inner = measure::inner_auto}}) {
    Captured captured;
    PhasePass pass = captured.make();
    pass.choose(100e3);
    const TimedPhases timed = captured.take(pass, plan, 4, 100e3);
    EXPECT_EQ(timed.pass.steps, 4);
    EXPECT_EQ(timed.samples.phases[0].device_ns, std::vector<double>(4, 30e3));
  }
}

TEST(PhasePass, LongStepsAreFewerByTheSlowestRank) {
  Captured captured;
  double others_s = 0;
  captured.largest = [&](std::span<const double> own) {
    std::vector<double> all(own.begin(), own.end());
    if (all.size() == 1 && all[0] < 100) all[0] = std::max(all[0], others_s);
    return all;
  };
  captured.event_ns = 1e8;
  PhasePass pass = captured.make();
  pass.choose(1e9);
  ASSERT_TRUE(pass.is_apart());
  EXPECT_EQ(captured.take(pass, {.steps = 10}, 10, 1e9).pass.steps, 5);
  others_s = 2.5;
  EXPECT_EQ(captured.take(pass, {.steps = 10}, 10, 1e9).pass.steps, 2);
}

TEST(PhasePass, CachesAreFlushedAsBeforeTheMeasuredSteps) {
  Captured captured;
  PhasePass pass = captured.make();
  pass.choose(100e3);
  (void)captured.take(pass, {.steps = 3, .cold_cache = true}, 3, 100e3);
  EXPECT_EQ(captured.flushed, static_cast<int>(captured.steps.size()));
}

TEST(PhasePass, TheRecordIsToldWhatPhasesAndStepsHaveInThem) {
  measure::LoopResult measured;
  measured.samples.step_ns = {1e6, 1e6};
  Captured captured;
  PhasePass pass = captured.make();
  EXPECT_EQ(pass.note(measured, nullptr),
            "the 4 events that time the phases of a captured step take about 10 us (as on an H200: not known of this "
            "device), 1.0% of the measured step; set [measure] warmup = 5 to have the phases timed in separate steps");
  pass.choose(1e6);
  const record::PhasePass reported{.steps = 2, .step_mean_ms = 1.0123, .events = 4, .event_us = 2.5};
  EXPECT_EQ(pass.note(measured, &reported),
            "phases come from 2 separate steps after the measured ones, of 1.012 ms each: the 4 events that time "
            "the phases of a captured step take about 10 us (as on an H200: not known of this device), 1.0% of a "
            "measured step, which is captured without them");
  measured.samples.step_ns = {1e9, 1e9};
  Captured long_steps;
  EXPECT_EQ(long_steps.make().note(measured, nullptr), "");
}

}  // namespace
}  // namespace assay::host::worker
