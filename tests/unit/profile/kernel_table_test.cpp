#include "profile/kernel_table.hpp"

#include <gtest/gtest.h>

namespace assay::host::profile {
namespace {

const std::vector<std::string> phases{"forward", "layer", "optimizer"};

TracedWork anchor(double end_ns) { return {"assay_trace_anchor", end_ns - 100, end_ns, true}; }
TracedWork kernel(const char* name, double start_ns, double end_ns) { return {name, start_ns, end_ns, false}; }

TEST(KernelRecord, KernelsGoToTheInnermostPhaseByTheirMiddle) {
  // Two steps on the trace's clock, which has nothing to do with the events' own.
  const std::vector<TracedWork> work{
      kernel("before", 10, 20),
      anchor(1000),
      kernel("gemm", 990, 1110),  // its begin seems to lie before the step
      kernel("gemm", 1200, 1300),
      kernel("norm", 1310, 1390),  // in the layer within forward
      kernel("adamw", 1500, 1600),
      kernel("late", 1900, 1950),
      anchor(5000),
      kernel("gemm", 5000, 5120),
      kernel("gemm", 5200, 5300),
      kernel("norm", 5310, 5390),
      kernel("adamw", 5500, 5600),
  };
  const std::vector<measure::PhaseSpan> spans{{0, 0, 450}, {1, 190, 400}, {2, 490, 620}};
  std::vector<TracedStep> steps{{1000, spans}, {1000, spans}};
  ASSERT_TRUE(place_work(work, steps));
  const record::Kernels kernels = kernels_of(steps, phases);
  ASSERT_EQ(kernels.size(), 4u);
  const auto rows = [&kernels](const char* phase) { return *record::find(kernels, phase); };
  ASSERT_EQ(rows("forward").size(), 1u);
  EXPECT_EQ(rows("forward")[0].kernel_class, "matrix products");
  EXPECT_DOUBLE_EQ(rows("forward")[0].count, 1);
  EXPECT_DOUBLE_EQ(rows("forward")[0].time_us, 0.120);
  ASSERT_EQ(rows("layer").size(), 2u);
  EXPECT_EQ(rows("layer")[0].name, "gemm");
  EXPECT_NEAR(rows("layer")[0].share, 100.0 / 180, 1e-12);
  EXPECT_EQ(rows("layer")[1].kernel_class, "norms");
  EXPECT_EQ(rows("optimizer")[0].kernel_class, "optimizer");
  EXPECT_EQ(rows("outside")[0].name, "late");
  EXPECT_DOUBLE_EQ(rows("outside")[0].count, 0.5);
  EXPECT_EQ(kernels.front().first, "forward");
}

TEST(PlaceWork, CountsFromTheEndOfTheStepsAnchor) {
  std::vector<TracedStep> steps(2);
  ASSERT_TRUE(place_work({kernel("before", 10, 20), anchor(1000), kernel("a", 990, 1110), kernel("b", 1200, 1300),
                          anchor(5000), kernel("c", 5010, 5020)},
                         steps));
  ASSERT_EQ(steps[0].work.size(), 2u);
  EXPECT_EQ(steps[0].work[0].name, "a");
  EXPECT_EQ(steps[0].work[0].start_ns, -10);
  EXPECT_EQ(steps[0].work[1].end_ns, 300);
  ASSERT_EQ(steps[1].work.size(), 1u);
  EXPECT_EQ(steps[1].work[0].start_ns, 10);
}

TEST(PlaceWork, NeedsAnAnchorForEachStep) {
  std::vector<TracedStep> one(1);
  EXPECT_FALSE(place_work({kernel("gemm", 0, 1)}, one));
  EXPECT_FALSE(place_work({anchor(0), anchor(1000)}, one));
  EXPECT_TRUE(one[0].work.empty());
}

// The host was slow to mark the begin: the phases of a step of 5 ms count from 4.1 ms after the anchor's end.
TEST(MisplacedWork, ShowsAnAnchorThatEndedBeforeTheStepsBegin) {
  const double length_ns = 5e6;
  const auto step_of = [&](double late_ns) {
    std::vector<TracedStep> steps{{length_ns, {}}};
    EXPECT_TRUE(place_work({anchor(7e9), kernel("first", 7e9 + late_ns + 2e3, 7e9 + late_ns + 9e3),
                            kernel("last", 7e9 + late_ns + 4.2e6, 7e9 + late_ns + 4.998e6)},
                           steps));
    return steps[0];
  };
  EXPECT_EQ(misplaced_ns(step_of(0)), 0);
  EXPECT_NEAR(misplaced_ns(step_of(4.1e6)), 4.098e6, 1);
  EXPECT_GT(misplaced_ns(step_of(4.1e6)), clock_tolerance_ns(length_ns));
  EXPECT_LT(misplaced_ns(step_of(5e3)), clock_tolerance_ns(length_ns));  // as far as two clocks may differ
  EXPECT_EQ(misplaced_ns({length_ns, {}}), 0);
}

TEST(MisplacedWork, ShowsWorkBeforeTheBegin) {
  std::vector<TracedStep> steps{{5e6, {}}};
  ASSERT_TRUE(place_work({anchor(1e6), kernel("other stream", 0.95e6, 0.99e6), kernel("own", 1.1e6, 1.2e6)}, steps));
  EXPECT_NEAR(misplaced_ns(steps[0]), 50e3, 1e-6);
}

TEST(MisplacedWork, LeavesOutCopiesOfOtherStreams) {
  std::vector<TracedStep> steps{{5e6, {}}};
  const TracedWork ahead{"copy", 8e6, 9e6, false, true};
  ASSERT_TRUE(place_work({anchor(1e6), kernel("own", 1.1e6, 1.2e6), ahead}, steps));
  EXPECT_EQ(misplaced_ns(steps[0]), 0);
  const record::Kernels kernels = kernels_of(steps, phases);
  EXPECT_EQ(record::find(kernels, "outside")->size(), 2u);  // and has them beside what no phase holds
}

TEST(KernelRecord, TablesOfClassesAndKernels) {
  const std::vector<TracedWork> work{kernel("gemm_a", 0, 3000), kernel("gemm_b", 3000, 4000),
                                     kernel("norm|x", 4000, 5000)};
  const record::Kernels kernels = kernels_of({{6000, {{0, 0, 6000}}, work}}, phases);
  const std::vector<std::string> lines = kernel_lines(kernels);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "  phase    kernels           launches      time, us   share");
  EXPECT_EQ(lines[1], "  forward  matrix products          2           4.0   80.0%");
  EXPECT_EQ(lines[2], "  forward  norms                    1           1.0   20.0%");
  const std::string text = kernel_markdown(kernels, "Kernels");
  EXPECT_NE(text.find("| forward | matrix products | 2 | 4.0 | 80.0% |"), std::string::npos) << text;
  EXPECT_NE(text.find("| norms | `norm\\|x` | 1 | 1.0 | 20.0% |"), std::string::npos) << text;
  EXPECT_TRUE(kernel_lines({}).empty());
}

}  // namespace
}  // namespace assay::host::profile
