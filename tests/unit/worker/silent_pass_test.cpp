// The steps without communication: how many they are, and what decides them.
#include "worker/silent_pass.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "measure/scripted_timeline.hpp"
#include "worker/peak_probe.hpp"

namespace assay::host::worker {
namespace {

struct Pass {
  measure::testing::ScriptedTimeline timeline;
  measure::Recorder recorder{timeline, 0, 0};
  bool is_cold = false;
  int steps_run = 0, after_steps = 0;
  std::vector<int> flushed_at;  // the steps that followed

  record::SilentPass take(const measure::MeasurePlan& plan, std::size_t samples, double measured_ns, double silent_ns,
                          std::int64_t inner = 1) {
    measure::LoopResult measured;
    measured.samples.step_ns.assign(samples, measured_ns);
    measured.inner = inner;
    SilentHooks hooks;
    hooks.run_step = [&, silent_ns](std::uint64_t) {
      ++steps_run;
      timeline.device_work(silent_ns);
    };
    hooks.after_step = [&] { ++after_steps; };
    if (is_cold)
      hooks.flush_caches = [&] {
        flushed_at.push_back(steps_run);
        timeline.device_work(1e6);
      };
    return silent_pass(timeline, recorder, plan, measured, hooks);
  }
};

TEST(SilentPass, TakesAsManyStepsAsWereMeasuredOnTheSameClock) {
  Pass pass;
  const record::SilentPass found = pass.take({.warmup = 5, .steps = 10}, 10, 1e6, 0.8e6);
  EXPECT_EQ(found.steps, 10);
  EXPECT_EQ(pass.steps_run, 15) << "a warm-up of one, and four that settle";
  EXPECT_EQ(pass.after_steps, 15);
  EXPECT_DOUBLE_EQ(found.step_mean_ms.value(), 0.8);
}

TEST(SilentPass, AStoppingRuleDoesNotGoOnHere) {
  Pass pass;
  EXPECT_EQ(pass.take({.until = measure::StoppingRule{}}, 40, 1e6, 0.8e6).steps, 40);
  Pass on_device;
  EXPECT_DOUBLE_EQ(on_device.take({.steps = 4, .sync = false}, 4, 1e6, 0.5e6).step_mean_ms.value(), 0.5);
}

TEST(SilentPass, LongStepsAreFewerAndAtLeastOne) {
  Pass pass;
  EXPECT_EQ(pass.take({.steps = 10}, 10, 1e9, 1e9).steps, 5);
  Pass epochs;
  EXPECT_EQ(epochs.take({.steps = 10}, 10, 60e9, 1e9).steps, 1);
  EXPECT_EQ(epochs.steps_run, 1);
}

// Of a sample of several steps the wait is a smaller part: with another number of them the difference to the measured
// step would not be communication alone.
TEST(SilentPass, ASampleHasAsManyStepsAsWasChosenBefore) {
  Pass pass;
  pass.timeline.let_instruments_cost(0, 800);
  const record::SilentPass found = pass.take({.steps = 3, .inner = measure::inner_auto}, 3, 2000, 1000, 8);
  EXPECT_EQ(found.steps, 3);
  EXPECT_EQ(pass.steps_run, 1 + 4 + 3 * 8);
  EXPECT_DOUBLE_EQ(found.step_mean_ms.value(), (8 * 1000 + 800) * 1e-6 / 8);
  Pass long_samples;
  EXPECT_EQ(long_samples.take({.steps = 10, .inner = 5}, 10, 1e9, 1e9, 5).steps, 1) << "one takes 5 s";
}

// Or the tax would have in it what the measured steps had to fetch from memory.
TEST(SilentPass, CachesAreFlushedAsBeforeTheMeasuredSteps) {
  Pass pass{.is_cold = true};
  const record::SilentPass found = pass.take({.steps = 3, .cold_cache = true}, 3, 1e6, 0.8e6);
  EXPECT_EQ(pass.flushed_at, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_DOUBLE_EQ(found.step_mean_ms.value(), 0.8) << "outside the time of the step";
}

TEST(Arithmetic, HasTheWordsOfRecords) {
  EXPECT_EQ(arithmetic_name(ASSAY_ARITHMETIC_UNSTATED), "");
  EXPECT_EQ(arithmetic_name(ASSAY_ARITHMETIC_TF32), "tf32");
  EXPECT_EQ(arithmetic_name(ASSAY_ARITHMETIC_BF16), "bf16");
  EXPECT_EQ(arithmetic_name(ASSAY_ARITHMETIC_FP8), "fp8");
  EXPECT_EQ(arithmetic_name(99), "");
  EXPECT_EQ(arithmetic_name(-1), "");
}

}  // namespace
}  // namespace assay::host::worker
