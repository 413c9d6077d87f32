#include "telemetry.hpp"

#include <assay/telemetry.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <exception>

namespace assay::cpu {
namespace {

assay_status guard(void (*body)(void*), void* context) noexcept {
  try {
    body(context);
    return ASSAY_OK;
  } catch (const std::exception&) {
    return ASSAY_INTERNAL;
  }
}

class CpuTelemetry : public testing::Test {
 protected:
  CpuTelemetry() { EXPECT_EQ(telemetry_->open(nullptr, &reader_), ASSAY_OK); }
  ~CpuTelemetry() override { telemetry_->close(reader_); }
  assay_telemetry_sample sample(assay_telemetry_moment moment) {
    assay_telemetry_sample out{};
    out.struct_size = sizeof out;
    EXPECT_EQ(telemetry_->sample(reader_, moment, &out), ASSAY_OK);
    return out;
  }
  // Takes this much processor time, however long that lasts.
  static void work(double seconds) {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    const double end = now() + seconds;
    while (now() < end) {
    }
  }

  const assay_telemetry* telemetry_ =
      static_cast<const assay_telemetry*>(telemetry_extension(ASSAY_EXT_TELEMETRY, guard));
  assay_telemetry_reader* reader_ = nullptr;
};

TEST_F(CpuTelemetry, OffersItsOwnExtensionAlone) {
  EXPECT_EQ(telemetry_extension("assay.telemetry/2", guard), nullptr);
  EXPECT_STREQ(telemetry_->note(reader_), "");
}

TEST_F(CpuTelemetry, UtilisationIsTheProcessorTimeOverTheTimeSinceTheSampleBefore) {
  work(0.02);
  EXPECT_EQ(sample(ASSAY_TELEMETRY_BEGIN).known, 0u) << "what was before the window";
  work(0.02);
  const auto busy = sample(ASSAY_TELEMETRY_WITHIN);
  ASSERT_EQ(busy.known, ASSAY_TELEMETRY_CPU_UTILISATION);
  // Processor seconds are what was worked: the share times the time times the processors.
  const double taken_of_one_s = busy.utilisation_percent / 100 * busy.utilisation_span_s;
  EXPECT_GE(taken_of_one_s * static_cast<double>(sysconf(_SC_NPROCESSORS_CONF)), 0.0199);
  EXPECT_LE(busy.utilisation_percent, 100);

  usleep(100'000);
  const auto idle = sample(ASSAY_TELEMETRY_END);
  EXPECT_LT(idle.utilisation_percent * idle.utilisation_span_s, busy.utilisation_percent * busy.utilisation_span_s)
      << "a sleep takes no processor time, however long it lasts";
}

TEST_F(CpuTelemetry, LimitsAreEmpty) {
  assay_telemetry_limits limits{};
  limits.struct_size = sizeof limits;
  limits.known = 1;
  EXPECT_EQ(telemetry_->limits(reader_, &limits), ASSAY_OK);
  EXPECT_EQ(limits.known, 0u);
  EXPECT_STREQ(limits.driver, "");
}

TEST_F(CpuTelemetry, AStructThatIsTooSmallIsRefused) {
  assay_telemetry_sample small{};
  small.struct_size = 16;
  EXPECT_NE(telemetry_->sample(reader_, ASSAY_TELEMETRY_END, &small), ASSAY_OK);
}

}  // namespace
}  // namespace assay::cpu
