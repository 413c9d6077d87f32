#include "record/figures.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::host::record {
namespace {

TEST(Figures, OfAPhase) {
  const std::vector<double> ms = {1, 2, 3, 4};
  const auto phase = phase_figures(ms, 1.25, 10, 0.9);
  EXPECT_EQ(phase.mean_ms, 2.5);
  EXPECT_EQ(phase.p50_ms, 2.5);
  EXPECT_FALSE(phase.p95_ms) << "four samples have none";
  EXPECT_NEAR(*phase.autocorrelation, 0.25, 1e-12);
  EXPECT_LT(*phase.effective_n, 4);
  EXPECT_EQ(phase.samples_ms, ms);
  EXPECT_EQ(phase.host_mean_ms, 1.25);
  EXPECT_EQ(phase.share, 0.25);
  EXPECT_EQ(phase.confidence, 0.9);
  EXPECT_EQ(phase.n, 4);
}

TEST(Figures, OfAMetric) {
  StepMetric metric;
  set_metric_figures(metric, std::vector<double>{3, 1, 2}, 0.95);
  EXPECT_EQ(metric.mean, 2.0);
  EXPECT_EQ(metric.min, 1.0);
  EXPECT_EQ(metric.max, 3.0);
  EXPECT_EQ(metric.last, 2.0);
  EXPECT_EQ(metric.std, 1.0);
}

TEST(Figures, OfWorkThereAreRatesOfWhatThereIs) {
  const auto rates = rate_figures(3e9, 0, 5, 500);
  EXPECT_DOUBLE_EQ(*rates.gflop_per_s, 6.0);
  EXPECT_DOUBLE_EQ(*rates.items_per_s, 10.0);
  EXPECT_FALSE(rates.gbytes_per_s);
}

TEST(Figures, NotesAreOfASpreadAndOfADrift) {
  EXPECT_TRUE(steadiness_notes(std::vector<double>{10, 10.1, 10, 10.1, 10, 10.1}).empty());
  EXPECT_TRUE(steadiness_notes(std::vector<double>{10}).empty());
  const auto wide = steadiness_notes(std::vector<double>{9, 11, 9, 11, 9, 11});
  ASSERT_EQ(wide.size(), 1u);
  EXPECT_TRUE(wide[0].starts_with("the step time's cv is 11.0%, above 5%")) << wide[0];
  EXPECT_EQ(steadiness_notes(std::vector<double>{1, 1, 2, 2, 3, 3}).size(), 2u);
}

}  // namespace
}  // namespace assay::host::record
