// The steps without communication: how many they are, and what they are told by.
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
  int steps_run = 0, between = 0;

  record::SilentPass take(const measure::MeasurePlan& plan, std::size_t measured, double measured_ns,
                          double silent_ns) {
    const std::vector<double> times(measured, measured_ns);
    return silent_pass(
        timeline, recorder, plan, times,
        [&](std::uint64_t) {
          ++steps_run;
          timeline.device_work(silent_ns);
        },
        [&] { ++between; });
  }
};

TEST(SilentPass, TakesAsManyStepsAsWereMeasuredOnTheSameClock) {
  Pass pass;
  const record::SilentPass found = pass.take({.warmup = 5, .steps = 10}, 10, 1e6, 0.8e6);
  EXPECT_EQ(found.steps, 10);
  EXPECT_EQ(pass.steps_run, 15) << "a warm-up of one, and four that settle";
  EXPECT_EQ(pass.between, 15);
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
