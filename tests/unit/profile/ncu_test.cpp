// What ncu is called with, and what it says. The tables are of the format that NVIDIA's manual describes; none of them
// was written by ncu.
#include "profile/ncu.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "profile/ncu_table.hpp"

namespace assay::host::profile {
namespace {

bool has_pair(const std::vector<std::string>& words, const std::string& option, const std::string& value) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found != words.end() && found + 1 != words.end() && *(found + 1) == value;
}

TEST(Ncu, CountsTheRangeOfOneStepNodeByNode) {
  const std::vector<std::string> words = ncu_arguments("/runs/ncu_case-0001.csv", 77);
  EXPECT_TRUE(has_pair(words, "--profile-from-start", "off"));
  EXPECT_TRUE(has_pair(words, "--graph-profiling", "node"));
  EXPECT_TRUE(has_pair(words, "--launch-count", "77"));
  EXPECT_TRUE(has_pair(words, "--log-file", "/runs/ncu_case-0001.csv"));
  EXPECT_TRUE(has_pair(words, "--page", "raw"));
  EXPECT_TRUE(has_pair(words, "--clock-control", "none"));
  const std::string& metrics = *(std::find(words.begin(), words.end(), "--metrics") + 1);
  EXPECT_TRUE(metrics.starts_with("gpu__time_duration.sum,dram__bytes.sum,")) << metrics;
}

TEST(Ncu, VersionsAreReadAndCompared) {
  EXPECT_EQ(ncu_version("NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2025 NVIDIA Corporation\n"
                        "Version 2025.3.1.0 (build 36398880) (public-release)\n"),
            "2025.3.1.0");
  EXPECT_EQ(ncu_version("Version unknown\nVersion 2024.1"), "2024.1");
  EXPECT_EQ(ncu_version("no such program"), "");
  for (const char* old : {"2022.4.1.6", "2019.5", "1.0", ""}) EXPECT_TRUE(is_too_old(old)) << old;
  for (const char* new_enough : {"2023.1", "2023.1.0.15", "2023.10", "2025.3.1.0"})
    EXPECT_FALSE(is_too_old(new_enough)) << new_enough;
}

TEST(Ncu, ComplaintsHaveARemedy) {
  EXPECT_EQ(ncu_complaint(""), "");
  EXPECT_EQ(ncu_complaint("==PROF== Connected to process 7\n==WARNING== No kernels were profiled.\n"), "");
  const std::string permission = ncu_complaint(
      "==PROF== Connected to process 7\r\n==ERROR== ERR_NVGPUCTRPERM - no permission on device 0.\r\n"
      "==ERROR== ERR_NVGPUCTRPERM - no permission on device 0.\r\n");
  EXPECT_TRUE(permission.find("NVreg_RestrictProfilingToAdminUsers=0") != std::string::npos) << permission;
  EXPECT_TRUE(permission.ends_with("; ncu says \"ERR_NVGPUCTRPERM - no permission on device 0.\"")) << permission;
  EXPECT_TRUE(ncu_complaint("==ERROR== unrecognised option '--graph-profiling'. Use --help")
                  .starts_with("this ncu does not know an option"));
  EXPECT_EQ(ncu_complaint("==ERROR== Something new."), "ncu says \"Something new.\"");
}

// ---- tables ----

const std::string head =
    "\"ID\",\"Process ID\",\"Kernel "
    "Name\",\"dram__bytes.sum\",\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\","
    "\"gpu__time_duration.sum\",\"sm__cycles_elapsed.avg.per_second\","
    "\"sm__ops_path_tensor_src_bf16_dst_fp32.sum.per_cycle_elapsed\","
    "\"sm__throughput.avg.pct_of_peak_sustained_elapsed\","
    "\"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum\",\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\","
    "\"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum\"\n";
const std::string units = "\"\",\"\",\"\",\"byte\",\"%\",\"ns\",\"hz\",\"1/cycle\",\"%\",\"inst\",\"inst\",\"inst\"\n";
const std::string two_rows =
    "\"0\",\"7\",\"gemm(\"\"a,b\"\")\",\"1,000,000\",\"20.5\",\"2,000\",\"1000000000\",\"500\",\"90\",\"10\",\"20\","
    "\"30\"\n"
    "\"1\",\"7\",\"norm\",\"4000\",\"80\",\"1000.0\",\"1000000000\",\"0\",\"n/a\",\"1\",\"2\",\"3\"\n";

std::string with(std::string text, const std::string& what, const std::string& by) {
  text.replace(text.find(what), what.size(), by);
  return text;
}

std::string problem_of(const std::string& text) { return read_ncu_table(text).problem; }

TEST(NcuTable, IsReadAmongTheOtherLines) {
  const NcuTable table = read_ncu_table("\"a program's own line\"\n==PROF== Connected to process 7\n" + head + units +
                                        two_rows + "==PROF== Disconnected from process 7\n");
  EXPECT_EQ(table.problem, "");
  EXPECT_TRUE(table.notes.empty());
  ASSERT_EQ(table.launches.size(), 2u);
  const CountedLaunch& gemm = table.launches[0];
  EXPECT_EQ(gemm.name, "gemm(\"a,b\")");
  EXPECT_EQ(gemm.time_us, 2);
  EXPECT_EQ(gemm.dram_bytes, 1e6);
  EXPECT_EQ(gemm.dram_percent, 20.5);
  EXPECT_EQ(gemm.sm_percent, 90);
  EXPECT_FALSE(gemm.tensor_percent) << "the table has no such column";
  EXPECT_DOUBLE_EQ(gemm.flops.value(), 10 + 30 + 2 * 20 + 500 * 1e9 * 2e-6);  // of 500 in each of 2000 cycles
  EXPECT_FALSE(table.launches[1].sm_percent) << "n/a is no number";
}

TEST(NcuTable, UnitsMayHaveAnyPrefix) {
  const NcuTable table = read_ncu_table(
      head +
      "\"\",\"\",\"\",\"Mbyte\",\"%\",\"msecond\",\"cycle/nsecond\",\"Kinst/cycle\",\"%\",\"\",\"Kinst\",\"inst\"\n" +
      with(with(two_rows, "1,000,000", "1.5"), "1000000000", "2"));
  ASSERT_EQ(table.problem, "");
  EXPECT_EQ(table.launches[0].time_us, 2e6);
  EXPECT_EQ(table.launches[0].dram_bytes, 1.5e6);
  EXPECT_DOUBLE_EQ(table.launches[0].flops.value(), 10 + 30 + 2 * 20e3 + 500e3 * 2e9 * 2.0);
}

TEST(NcuTable, WhatCannotBeUsedIsAProblemInWords) {
  EXPECT_EQ(problem_of(""), "it is empty");
  EXPECT_EQ(problem_of("==WARNING== No kernels were profiled.\n"), "it has no rows: no kernel was counted");
  EXPECT_EQ(problem_of(head + units), "it has a head and no rows: no kernel was counted");
  // Another page, or an older format: a row for each metric.
  EXPECT_EQ(
      problem_of(
          "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n\"0\",\"a\",\"b\",\"ns\",\"1\"\n"
          "\"0\",\"a\",\"c\",\"ns\",\"1\"\n"),
      "it has no column gpu__time_duration.sum: another version's table, or another page");
  EXPECT_EQ(problem_of(head + with(units, "\"ns\"", "\"fortnight\"") + two_rows),
            "its column gpu__time_duration.sum is in 'fortnight', a unit that is not known");
  EXPECT_EQ(problem_of(head + units + with(two_rows, "1,000,000", "-4")),
            "its column dram__bytes.sum has -4, which is no count; expected 0 to 1e+18");
  EXPECT_EQ(problem_of(head + units + with(two_rows, "1,000,000", "1e300")),
            "its column dram__bytes.sum has 1e300, which is no count; expected 0 to 1e+18");
  EXPECT_EQ(problem_of(head + units + with(two_rows, "\"1\",\"7\"", "\"0\",\"7\"")),
            "its row 4 has the ID 0 of an earlier one: a launch counts once");
  EXPECT_EQ(problem_of(head + units + with(two_rows, "2,000", "65,77")), "'65,77' is no number in English");
  EXPECT_EQ(problem_of(head + units + with(two_rows, "1,000,000", "27.595.520")), "");
  EXPECT_EQ(problem_of(head + units + with(two_rows, "2,000", "n/a")),
            "it has no time of the kernel gemm(\"a,b\") in row 3");
}

TEST(NcuTable, OneThatWasCutAnywhereIsNotUsed) {
  const std::string whole = head + units + two_rows;
  // Nobody can see a cut right behind a row; the last row may be without its end of line.
  const std::size_t behind_first = whole.find("\"1\",\"7\"");
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    if (length == behind_first || length + 1 == behind_first) continue;
    EXPECT_NE(problem_of(whole.substr(0, length)), "") << "cut to " << length << " of " << whole.size();
  }
  EXPECT_EQ(problem_of(whole.substr(0, whole.size() - 1)), "");
}

TEST(NcuTable, EachOperationOfTensorCoresCountsOnce) {
  // Several names for the same operations: the widest counts, and of a count and a rate the count.
  const auto flops_of = [](const std::vector<std::string>& columns) {
    std::string names =
        "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\","
        "\"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum\","
        "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\","
        "\"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum\"";
    std::string of_names = "\"\",\"\",\"us\",\"\",\"\",\"\"", values = "\"0\",\"a\",\"1\",\"0\",\"0\",\"0\"";
    double value = 1;
    for (const std::string& column : columns) {
      names += ",\"sm__ops_path_tensor_" + column + "\"";
      of_names += ",\"\"";
      values += ",\"" + std::to_string(value) + "\"";
      value *= 10;
    }
    const NcuTable table = read_ncu_table(names + "\n" + of_names + "\n" + values + "\n");
    EXPECT_EQ(table.problem, "");
    return table.launches.at(0).flops;
  };
  EXPECT_EQ(flops_of({"src_bf16_dst_fp32.sum", "src_fp16.sum"}), 11);
  EXPECT_EQ(flops_of({"src_fp16_dst_fp16.sum", "src_fp16_dst_fp32.sum"}), 11);
  EXPECT_EQ(flops_of({"src_fp16.sum", "src_fp16_dst_fp16.sum", "src_fp16_dst_fp32.sum"}), 1);
  EXPECT_EQ(flops_of({"src_bf16_dst_fp32.sum", "op_hgmma_src_bf16_dst_fp32_sparsity_off.sum"}), 1);
  EXPECT_EQ(flops_of({"op_hgmma_src_fp16_sparsity_off.sum", "op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
                      "op_hmma_src_fp16_dst_fp32_sparsity_on.sum"}),
            111);
  EXPECT_EQ(flops_of({"src_bf16_dst_fp32.sum", "src_bf16_dst_fp32.sum.per_cycle_elapsed"}), 1);
  EXPECT_EQ(flops_of({"src_int8.sum", "src_bf16_dst_fp32.sum"}), 10) << "integers are no floating point";
  EXPECT_EQ(flops_of({"src_bf16_dst_fp32.sum.per_cycle_elapsed"}), std::nullopt) << "without a clock it is no count";
  EXPECT_EQ(flops_of({}), std::nullopt);
}

}  // namespace
}  // namespace assay::host::profile
