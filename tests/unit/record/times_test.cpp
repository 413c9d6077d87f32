#include "record/times.hpp"

#include <gtest/gtest.h>

#include "record/json.hpp"

namespace assay::host::record {
namespace {

// A result with everything that a step's time decides, and some of what it does not.
CaseResult reported() {
  CaseResult r;
  r.phases = {{"step", Phase{.mean_ms = 3}}};
  r.wall.case_s = 9, r.wall.measure_s = 4, r.wall.warmup_s = 1, r.wall.setup_s = 2;
  r.drift = 0.1;
  r.rates.emplace(), r.sampling.emplace(), r.contention.emplace(), r.telemetry.emplace(), r.validity.emplace();
  r.memory = Memory{};
  r.memory->peak_total_mib = 5, r.memory->process_peak_mib = 6;
  r.efficiency = Efficiency{.stated = Peak{}, .measured = Peak{}, .mfu = 0.5};
  r.metrics = {{"parameters", CaseMetric{}}, {"first_step", CaseMetric{}}};
  r.metrics->at(1).second.unit = "ms";
  return r;
}

TEST(Times, LeaveAResultWithAllThatIsMeasured) {
  CaseResult r = reported();
  remove_times(r);
  EXPECT_FALSE(r.phases || r.drift || r.rates || r.sampling || r.contention || r.telemetry || r.validity);
  EXPECT_FALSE(r.wall.measure_s || r.wall.warmup_s || r.memory->process_peak_mib);
  EXPECT_FALSE(r.efficiency->measured || r.efficiency->mfu);
  ASSERT_EQ(r.metrics->size(), 1u);
  EXPECT_EQ(r.metrics->front().first, "parameters");
  // What no clock has measured stays, and so does how long the stages of the case took.
  EXPECT_TRUE(r.wall.case_s && r.wall.setup_s && r.memory->peak_total_mib && r.efficiency->stated);
}

TEST(Times, LeaveNoEmptyPartsBehind) {
  CaseResult r;
  r.efficiency = Efficiency{.measured = Peak{}};
  r.metrics = {{"rate", CaseMetric{}}};
  r.metrics->at(0).second.unit = "tokens/s";
  remove_times(r);
  EXPECT_FALSE(r.efficiency || r.metrics);
}

}  // namespace
}  // namespace assay::host::record
