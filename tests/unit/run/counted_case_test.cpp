// What becomes of the result of a case that ncu was to count.
#include "run/counted_case.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.hpp"

namespace assay::host::run::test {
namespace {

using record::CaseResult;
using record::Status;

class CountedCase : public testing::Test {
 protected:
  CountedCase() {
    spec_.run_folder = folder_.path().string();
    spec_.device_kind = "cuda";
    spec_.values.profile.ncu = true;
  }
  void write(const std::string& text) const { std::ofstream(table_of_ncu(spec_)) << text; }

  static CaseResult measured() {
    CaseResult result;
    result.phases.emplace().emplace_back("step", record::Phase{.mean_ms = 1.0});
    result.rates.emplace().items_per_s = 5;
    result.telemetry.emplace().energy_j = 3;
    result.drift = 0.1;
    result.phase_pass.emplace();
    result.wall.case_s = 9, result.wall.measure_s = 4;
    result.memory.emplace().peak_total_mib = 7, result.memory->process_peak_mib = 70;
    result.metrics.emplace();
    result.metrics->emplace_back("parameters", record::CaseMetric{12, "", {}, {}});
    result.metrics->emplace_back("communication_ms", record::CaseMetric{0.5, "ms", {}, {}});
    result.metrics->emplace_back("bandwidth", record::CaseMetric{5, "GB/s", {}, {}});
    result.efficiency.emplace().stated = record::Peak{1, 2, "a maker"};
    result.efficiency->mfu = 0.5;
    return result;
  }

  assay::test::TemporaryFolder folder_;
  worker::CaseSpec spec_;
};

constexpr const char* table =
    "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\"\",\"\",\"us\",\"byte\"\n"
    "\"0\",\"gemm\",\"2\",\"3\"\n";

TEST_F(CountedCase, HasCountsAndNoTimes) {
  write(table);
  CaseResult result = measured();
  take_counts(spec_, result);
  EXPECT_TRUE(result.is_ok());
  EXPECT_FALSE(result.phases || result.rates || result.telemetry || result.drift || result.phase_pass ||
               result.wall.measure_s);
  EXPECT_TRUE(result.wall.case_s && result.memory->peak_total_mib && !result.memory->process_peak_mib);
  ASSERT_EQ(result.metrics->size(), 1u);
  EXPECT_EQ(result.metrics->front().first, "parameters");
  EXPECT_TRUE(result.efficiency->stated && !result.efficiency->mfu);
  ASSERT_TRUE(result.ncu.has_value());
  EXPECT_EQ(result.ncu->kernels.at(0).dram_bytes, 3);
  EXPECT_FALSE(result.ncu->kernels.at(0).flops) << "the table has no operations";
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / result.ncu->file));
}

TEST_F(CountedCase, WithoutATableHasFailedAndSaysWhy) {
  CaseResult result = measured();
  take_counts(spec_, result);
  EXPECT_EQ(result.status, Status::failed);
  EXPECT_EQ(result.reason,
            "ncu: ncu_case-0001.csv cannot be used: it was not written; logs/case-0001.log has what ncu has said");
  EXPECT_FALSE(result.phases || result.ncu) << "neither a time nor a count";
  write("==ERROR== ERR_NVGPUCTRPERM - no.\n");
  result = measured();
  take_counts(spec_, result);
  EXPECT_TRUE(result.reason.starts_with("ncu: no permission")) << result.reason;
}

// Part of the kernels was counted: the table is there, and so is the complaint.
TEST_F(CountedCase, AComplaintBesideATableIsANote) {
  write(std::string(table) + "==ERROR== Failed to profile \"adamw\"\n");
  CaseResult result = measured();
  take_counts(spec_, result);
  EXPECT_TRUE(result.is_ok());
  EXPECT_EQ(result.notes->at(1), "ncu: ncu says \"Failed to profile \"adamw\"\"");
}

TEST_F(CountedCase, ACaseThatIsNotOkKeepsItsReason) {
  CaseResult wrong;
  wrong.status = Status::wrong_result, wrong.reason = "loss is far";
  take_counts(spec_, wrong);
  EXPECT_EQ(wrong.reason, "loss is far");
  CaseResult lost;
  lost.status = Status::crashed, lost.reason = "exited with code 1";
  lost.log_tail = {"==ERROR== unrecognised option '--graph-profiling'."};
  take_counts(spec_, lost);
  EXPECT_TRUE(lost.reason.starts_with("ncu: this ncu does not know") && lost.reason.ends_with("; exited with code 1"))
      << lost.reason;
  CaseResult late;
  late.status = Status::timeout, late.reason = "took too long";
  take_counts(spec_, late);
  EXPECT_TRUE(late.reason.starts_with("took too long; ") && late.reason.ends_with("lower profile.ncu_launches"));
}

TEST_F(CountedCase, WhatAnEarlierStartHasLeftIsForgotten) {
  write(table);
  forget_counts(spec_);
  EXPECT_FALSE(std::filesystem::exists(table_of_ncu(spec_)));
  EXPECT_TRUE(is_counted(spec_));
  spec_.device_kind = "cpu";
  EXPECT_FALSE(is_counted(spec_));
}

}  // namespace
}  // namespace assay::host::run::test
