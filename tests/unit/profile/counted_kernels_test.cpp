#include "profile/counted_kernels.hpp"

#include <gtest/gtest.h>

namespace assay::host::profile {
namespace {

CountedLaunch launch(std::string name, double time_us, std::optional<double> bytes, std::optional<double> flops,
                     double dram_percent, double sm_percent, double tensor_percent = 0) {
  return {std::move(name), time_us, bytes, flops, dram_percent, sm_percent, tensor_percent, 50};
}

TEST(CountedKernels, AreGroupedByNameLongestFirst) {
  const auto kernels = counted_kernels({launch("rms_norm", 1, 2e6, 10, 90, 10), launch("gemm", 2, 1e6, 8e9, 10, 95, 90),
                                        launch("rms_norm", 3, 6e6, 30, 70, 50)});
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "rms_norm");
  EXPECT_EQ(kernels[0].kernel_class, "norms");
  EXPECT_EQ(kernels[0].count, 2);
  EXPECT_EQ(kernels[0].time_us, 4);
  EXPECT_EQ(kernels[0].dram_bytes, 8e6);
  EXPECT_DOUBLE_EQ(kernels[0].dram_percent.value(), (90 + 3 * 70) / 4.0) << "by time";
  EXPECT_DOUBLE_EQ(gbytes_per_s(kernels[0]).value(), 2000);
  EXPECT_EQ(kernels[0].bound, "memory");
  EXPECT_EQ(kernels[1].bound, "tensor cores");
  EXPECT_DOUBLE_EQ(gflop_per_s(kernels[1]).value(), 4e6);
  EXPECT_DOUBLE_EQ(flops_per_byte(kernels[1]).value(), 8000);
  const record::CountedKernel all = sum_of(kernels);
  EXPECT_EQ(all.count, 3);
  EXPECT_EQ(all.dram_bytes, 9e6);
  EXPECT_EQ(all.bound, "");
}

TEST(CountedKernels, ASumWithoutOneOfItsPartsIsNone) {
  const auto kernels = counted_kernels({launch("gemm", 1, 1e6, 1e9, 10, 95), launch("gemm", 1, {}, {}, 10, 95)});
  EXPECT_FALSE(kernels[0].dram_bytes);
  EXPECT_FALSE(kernels[0].flops);
  EXPECT_FALSE(gbytes_per_s(kernels[0]));
  EXPECT_EQ(kernels[0].bound, "instructions");
}

TEST(CountedKernels, WhatIsBusyForLittleOfTheTimeWaits) {
  EXPECT_EQ(bound_of(59.9, 59.9, 59.9), "latency");
  EXPECT_EQ(bound_of(60, 59, 0), "memory");
  EXPECT_EQ(bound_of(60, 61, 20), "instructions");
  EXPECT_EQ(bound_of(60, 61, 60), "tensor cores");
  EXPECT_EQ(bound_of({}, 61, 60), "");
}

TEST(CountedKernels, TablesStandBesideTheWorkloadsAccount) {
  record::CaseResult result;
  result.device.emplace().name = "NVIDIA H200";
  result.work = record::Work{4'000'000'000, 0, 1, "", "bf16"};
  record::CounterProfile& profile = result.ncu.emplace();
  profile.version = "2025.3.1.0", profile.launches = 3, profile.is_at_limit = true, profile.file = "ncu_case-0001.md";
  profile.kernels = counted_kernels({launch("gemm", 2, 4.8e6, 8e9, 10, 95, 90), launch("norm|x", 1, 2.4e6, 0, 90, 10),
                                     launch("adamw", 0.5, 0, 0, 10, 10)});
  const std::vector<std::string> lines = counted_lines(result, 2);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0], "  kernel  launches  time, us  DRAM, MB   GB/s  of peak  TFLOP/s  FLOP/byte  occupancy  bound");
  EXPECT_EQ(lines[1],
            "  gemm           1       2.0      4.80  2,400      50%    4,000      1,667        50%  tensor cores");
  EXPECT_EQ(lines[4], "  1 more kernels are in ncu_case-0001.md");
  EXPECT_EQ(lines[5],
            "  8.00 GFLOP counted, 4.00 by the workload's own account of a step (operations): a ratio of 2.00.");
  EXPECT_EQ(lines[6], "  0.00720 GB of the device's memory counted; the workload states no bytes of a step.");
  EXPECT_TRUE(lines[7].find("ncu_launches") != std::string::npos) << lines[7];
  const std::string text = counted_markdown(result);
  EXPECT_NE(text.find("| norms | `norm\\|x` | 1 | 1.0 | 2.40 | 2,400 | 50% | 0 | 0 | 50% | memory |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("| all | 3 | 3.5 |"), std::string::npos) << text;
}

}  // namespace
}  // namespace assay::host::profile
