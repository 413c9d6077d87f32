// What the OSU micro-benchmarks 7.4 print with Open MPI 4.1.4, shortened; atomics of OpenSHMEM by their source.
#include <gtest/gtest.h>

#include <string>

#include "imported_run.hpp"
#include "imports/formats.hpp"
#include "imports/making_records.hpp"

namespace assay::host::imports {
namespace {

TEST(Osu, TestsOfOneLog) {
  const ImportedRun run = detected(
      "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_FLOAT.\n"
      "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations        Validation\n"
      "4  1.50  1.00  2.00  1000  Pass\n8  1.75  1.00  2.00  1000  Fail\n16 1.0 noise\n"
      "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1  2.50\n");
  ASSERT_EQ(run.records.size(), 3u);
  EXPECT_EQ(run.records[0].identity.workload, "osu:MPI Allreduce Latency");
  EXPECT_EQ(param(run.records[0], "type"), "MPI_FLOAT");
  EXPECT_DOUBLE_EQ(*step(run.records[0]).mean_ms, 0.0015);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).max_ms, 0.002);
  EXPECT_EQ(step(run.records[0]).n, 1000);
  EXPECT_EQ(*record::find(run.records[0].result.libraries, "osu-micro-benchmarks"), "7.4");
  EXPECT_EQ(run.records[1].result.status, record::Status::wrong_result);
  EXPECT_FALSE(run.records[1].result.phases);
  EXPECT_EQ(run.records[2].identity.workload, "osu:MPI Bandwidth");
  EXPECT_DOUBLE_EQ(metric(run.records[2], "gbytes_per_s"), 0.0025);
  EXPECT_NE(notes(run).find("rows torn by other output and left out: 1"), std::string::npos);
  // What stands before the columns distinguishes tests of one name.
  const std::string test = "# OSU MPI-CUDA Bandwidth Test v7.4\n# Send Buffer on ";
  const std::string rows = "\n# Size   Bandwidth (MB/s)   P99 Tail BW(MB/s)\n1  12000  9000\n";
  const ImportedRun two = detected(test + "DEVICE (D)" + rows + test + "HOST (H)" + rows);
  ASSERT_EQ(two.records.size(), 2u);
  EXPECT_EQ(param(two.records[1], "settings"), "Send Buffer on HOST (H)");
}

// A single blank stands between two columns where a name is as long as its field.
TEST(Osu, ColumnsOfOneBlankBetween) {
  const ImportedRun run = detected(
      "\n# OSU MPI Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n"
      "# Size      Bandwidth (MB/s) P50 Tail BW(MB/s) P99 Tail BW(MB/s)\n"
      "1                       7.11              6.93              9.13\n");
  ASSERT_EQ(run.records.size(), 1u);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "gbytes_per_s"), 0.00711);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "gbytes_per_s_P50"), 0.00693);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "gbytes_per_s_P99"), 0.00913);
}

TEST(Osu, FiguresWithoutAMeanAreMetrics) {
  const ImportedRun run = detected(
      "# OSU MPI Allreduce Latency Test v7.4\n"
      "# Size       Min Latency(us)   Max Latency(us)  Iterations  P99 Tail Lat(us)\n4  1.00  2.00  20  1.50\n");
  ASSERT_EQ(run.records.size(), 1u);
  EXPECT_FALSE(run.records[0].result.phases);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "latency_min_us"), 1);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "latency_max_us"), 2);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "latency_p99_us"), 1.5);
  EXPECT_DOUBLE_EQ(metric(run.records[0], "iterations"), 20);
}

TEST(Osu, SeveralPairsAndWindows) {
  const ImportedRun pairs = detected(
      "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 2 ] [ window size: 64 ]\n"
      "# Datatype: MPI_CHAR.\n# Size                  MB/s        Messages/s\n1  8.38  8376086.27\n");
  ASSERT_EQ(pairs.records.size(), 1u);
  EXPECT_EQ(param(pairs.records[0], "pairs"), "2");
  EXPECT_EQ(param(pairs.records[0], "window"), "64");
  EXPECT_EQ(pairs.records[0].identity.ranks, 4);
  EXPECT_DOUBLE_EQ(metric(pairs.records[0], "messages_per_s"), 8376086.27);
  const ImportedRun varied = detected(
      "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 1 ] [ window size: varied ]\n\n"
      "# Uni-directional Bandwidth (MB/sec)\n# Datatype: MPI_CHAR.\n"
      "#                 1           2\n1              1.30        1.85\n2              2.61        3.79\n\n"
      "# Message Rate Profile\n#                 1           2\n1        1297690.11  1852537.98\n"
      "2        1307018.69  1894657.07\n");
  ASSERT_EQ(varied.records.size(), 4u);
  EXPECT_EQ(param(varied.records[3], "bytes"), "2");
  EXPECT_EQ(param(varied.records[3], "window"), "2");
  EXPECT_DOUBLE_EQ(metric(varied.records[3], "gbytes_per_s"), 0.00379);
  EXPECT_DOUBLE_EQ(metric(varied.records[3], "messages_per_s"), 1894657.07);
}

TEST(Osu, StartUpAndAtomics) {
  const ImportedRun init = detected("# OSU MPI Init Test v7.4\nnprocs: 2, min: 242 ms, max: 244 ms, avg: 243 ms\n");
  ASSERT_EQ(init.records.size(), 1u);
  EXPECT_EQ(init.records[0].identity.ranks, 2);
  EXPECT_DOUBLE_EQ(*step(init.records[0]).mean_ms, 243);
  EXPECT_DOUBLE_EQ(*step(init.records[0]).min_ms, 242);
  const ImportedRun atomics = detected(
      "# OSU OpenSHMEM Atomic Operation Rate Test v7.4\n# Operation            Million ops/s      Latency (us)\n"
      "shmem_int_fadd                    1.25              0.80\n");
  ASSERT_EQ(atomics.records.size(), 1u);
  EXPECT_EQ(param(atomics.records[0], "operation"), "shmem_int_fadd");
  EXPECT_DOUBLE_EQ(*step(atomics.records[0]).mean_ms, 0.0008);
  EXPECT_DOUBLE_EQ(metric(atomics.records[0], "ops_per_s"), 1.25e6);
}

TEST(Osu, SettingsBeforeItsName) {
  const ImportedRun run = detected(
      "# Number of Sender threads: 1 \n# Number of Receiver threads: 2\n\n# OSU MPI Multi-threaded Latency Test v7.4\n"
      "# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1                       0.41\n");
  ASSERT_EQ(run.records.size(), 1u);
  EXPECT_EQ(param(run.records[0], "settings"), "Number of Sender threads: 1; Number of Receiver threads: 2");
}

TEST(Osu, OtherLinesBehindATableAreNoRows) {
  const ImportedRun run = detected(
      "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n0 0.00\n1  2.50\n4  9.50\n8 -3\n"
      "16 1e300\n36893488147419103232 5\n2026 11\n32 Celsius\n");
  ASSERT_EQ(run.records.size(), 6u);
  EXPECT_TRUE(run.records[2].result.is_ok()) << "a row is missing before it";
  EXPECT_EQ(run.records[3].result.reason, "its gbytes_per_s is -0.003");
  EXPECT_FALSE(run.records[4].result.is_ok());
  EXPECT_EQ(param(run.records[5], "bytes"), "36893488147419103232");
  EXPECT_NE(notes(run).find("rows torn by other output and left out: 2"), std::string::npos) << notes(run);
}

TEST(Osu, TimesThatContradictEachOtherAreNone) {
  ImportedRun run = detected(
      "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)\n"
      "1  2.00  1.00  3.00\n2  2.00  2.50  3.00\n4  2.00  1.00  1.50\n8  2.00  2.00  2.00\n");
  ASSERT_EQ(run.records.size(), 4u);
  fail_contradictions(run.records);
  EXPECT_TRUE(run.records[0].result.is_ok() && run.records[3].result.is_ok());
  EXPECT_EQ(run.records[1].result.reason,
            "its times contradict each other: least 0.0025 ms, mean 0.002 ms, most 0.003 ms");
  EXPECT_EQ(run.records[2].result.status, record::Status::failed);
}

TEST(Osu, WhatIsNoNumberIsNamed) {
  const ImportedRun run = detected(
      "# OSU MPI Non-blocking Allreduce Latency Test v7.4\n"
      "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n# Datatype: MPI_CHAR.\n"
      "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
      "4  2.16  1.31  0.00  -nan\n8  nan  1.31  0.81  7.72\n");
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_DOUBLE_EQ(*step(run.records[0]).mean_ms, 0.00216);
  EXPECT_NE(notes(run).find("figures that are no numbers, left out: Overlap(%)"), std::string::npos) << notes(run);
  EXPECT_EQ(run.records[1].result.reason, "its Overall(us) is 'nan'");
}

}  // namespace
}  // namespace assay::host::imports
