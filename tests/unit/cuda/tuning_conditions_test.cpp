#include "tuning_conditions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace assay::cuda {
namespace {

TEST(TuningConditions, LimitsAreOneText) {
  assay_telemetry_limits limits{};
  limits.application_sm_clock_mhz = 1980, limits.max_sm_clock_mhz = 1980;
  limits.max_memory_clock_mhz = 3201, limits.power_w = 500.0, limits.default_power_w = 700;
  EXPECT_EQ(limits_text(limits), "") << "nothing is told";
  limits.known = ASSAY_LIMIT_APPLICATION_SM_CLOCK | ASSAY_LIMIT_MAX_SM_CLOCK | ASSAY_LIMIT_MAX_MEMORY_CLOCK |
                 ASSAY_LIMIT_POWER | ASSAY_LIMIT_DEFAULT_POWER;
  EXPECT_EQ(limits_text(limits), "SM 1980 MHz of 1980 MHz, memory of 3201 MHz, power 500 W of 700 W");
  limits.known = ASSAY_LIMIT_POWER;
  EXPECT_EQ(limits_text(limits), "power 500 W");
}

TEST(TuningConditions, UnsteadyTimesAreOfASharedGpu) {
  const auto steady = [](const std::vector<double>& times_us) { return is_steady(times_us); };
  EXPECT_TRUE(steady({10.0, 10.2, 10.4}));
  EXPECT_TRUE(steady({10.0, 10.2, 30.0})) << "most rounds are good, and the median decides";
  EXPECT_FALSE(steady({10.0, 20.0, 20.5}));
  EXPECT_FALSE(steady({20.5, 10.0, 12.0, 10.1, 31.0}));
  EXPECT_TRUE(steady({10.0}));
  EXPECT_TRUE(steady({}));
}

}  // namespace
}  // namespace assay::cuda
