// Logs of nccl-tests as people have them: several programs, several jobs, torn rows, missing ends, prefixes.
#include <gtest/gtest.h>

#include <string>

#include "imported_run.hpp"
#include "imports/log_text.hpp"
#include "readers.hpp"

namespace assay::host::imports {
namespace {

const std::string settings =
    "# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
    "validation: 1 graph: 0\n#\n# Using devices\n";
const std::string ranks =
    "#  Rank  0 Group  0 Pid 100 on node7 device  0 [0x18] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid 100 on node7 device  1 [0x2a] NVIDIA H100\n";
const std::string columns =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n";
const std::string row_1024 = "        1024  256  float  sum  -1  10.50  0.10  0.10  0  10.25  0.10  0.10  0\n";
const std::string row_2048 = "        2048  512  float  sum  -1  12.00  0.17  0.17  0  11.75  0.17  0.17  0\n";
const std::string good_end = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.135\n";

std::string started(const std::string& name) { return "# Collective test starting: " + name + "\n"; }
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}
ImportedRun from_log(const std::string& text) { return read_nccl_tests(text, {.file_name = "all_reduce_perf.txt"}); }
double step_us(const record::CaseRecord& record) { return *record::find(record.result.phases, "step")->mean_ms * 1e3; }

TEST(NcclLog, EachStartOfAProgramIsASection) {
  const std::string two_ranks = settings + ranks + columns;
  const std::string other = replaced(replaced(two_ranks, "   redop    root", ""), "#wrong", "error");
  const std::string eight =
      settings + ranks + "#  Rank  2 Group  0 Pid 9 on node8 device  0 [0x18] NVIDIA A100\n" + columns;
  const ImportedRun run = from_log(started("all_reduce_perf") + two_ranks + row_1024 + good_end +
                                   started("sendrecv_perf") + other + "  64 64 uint8 6.5 1 1 0e+00 6.4 1 1 0e+00\n" +
                                   good_end + started("alltoall_perf") + eight + row_1024 + good_end);
  ASSERT_EQ(run.records.size(), 6u);
  EXPECT_EQ(run.name, "nccl-tests");
  EXPECT_EQ(run.records[0].identity.workload, "nccl-tests:all_reduce");
  EXPECT_EQ(run.records[2].identity.workload, "nccl-tests:sendrecv");
  EXPECT_NEAR(step_us(run.records[2]), 6.5, 1e-9);
  EXPECT_EQ(run.records[4].identity.workload, "nccl-tests:alltoall");
  EXPECT_EQ(run.records[2].identity.ranks, 2);
  EXPECT_EQ(run.records[4].identity.ranks, 3);
  EXPECT_EQ(run.records[4].result.device->name, "NVIDIA H100, NVIDIA A100");
  EXPECT_EQ(run.records[4].host, "node7, node8");
  EXPECT_EQ(notes(run), "");
}

TEST(NcclLog, ProgramsThatNobodyNamesAreNotGuessed) {
  const std::string old = settings + ranks + columns + row_1024 + good_end;
  EXPECT_NE(problem([&] { from_log(old + replaced(old, "   redop    root", "")); }).find("without their names"),
            std::string::npos);
  EXPECT_NE(problem([&] { from_log(started("sendrecv_perf") + old + old); }).find("--name"), std::string::npos);
}

TEST(NcclLog, TheProgramsOwnVerdictCounts) {
  const std::string head = settings + ranks + columns;
  const auto statuses = [](const ImportedRun& run) {
    std::string all;
    for (const auto& record : run.records) all += record.result.status_text() + " ";
    return all;
  };
  const std::string failed = "# Out of bounds values : 4 FAILED\n# Avg bus bandwidth : 1\n";
  const ImportedRun none_shown = from_log(head + row_1024 + row_2048 + failed);
  EXPECT_EQ(statuses(none_shown), "wrong_result wrong_result wrong_result wrong_result ");
  EXPECT_FALSE(none_shown.records[0].result.phases);
  EXPECT_FALSE(none_shown.records[0].result.metrics);
  const std::string one_wrong = replaced(row_2048, "0.17  0\n", "0.17  3\n");
  EXPECT_EQ(statuses(from_log(head + row_1024 + one_wrong + replaced(failed, "4", "1"))), "ok ok ok wrong_result ");
  // Older programs print the largest error.
  const std::string old = replaced(head, "#wrong", "error");
  const auto in_type = [&](const std::string& type, const std::string& error) {
    return statuses(from_log(old + "  64 64 " + type + " sum -1 6.5 1 1 0e+00 6.4 1 1 " + error + "\n" + good_end));
  };
  EXPECT_EQ(in_type("uint8", "3e+02"), "ok wrong_result ");
  EXPECT_EQ(in_type("float", "2e-07"), "ok ok ");
  EXPECT_EQ(in_type("float", "1e-01"), "ok wrong_result ");
}

TEST(NcclLog, JobsSideBySideAreNotOneOfAllRanks) {
  const ImportedRun run = from_log(settings + settings + ranks + replaced(ranks, "node7", "node8") + columns + columns +
                                   row_1024 + row_1024 + good_end + good_end);
  ASSERT_EQ(run.records.size(), 4u);
  EXPECT_EQ(run.records[0].identity.ranks, 2);
  EXPECT_NE(notes(run).find("2 jobs of 2 ranks"), std::string::npos);
  const std::string one = "#  Rank  0 Pid 1 on node7 device  0 [0x00] Tesla V100\n";
  EXPECT_NE(problem([&] {
              from_log(settings + settings + ranks + one + columns + columns + row_1024 + row_1024 + good_end);
            }).find("their rows cannot be distinguished"),
            std::string::npos);
  // A first start that failed is no second job.
  const ImportedRun again = from_log(settings + ranks + settings + ranks + columns + row_1024 + good_end);
  EXPECT_EQ(again.records[0].identity.ranks, 2);
  EXPECT_NE(notes(again).find("1 more began and ended before a first size"), std::string::npos);
}

TEST(NcclLog, GroupsOfASplitHaveASizeOfTheirOwn) {
  const std::string split = ranks + replaced(replaced(ranks, "Rank  0", "Rank  2"), "Rank  1", "Rank  3");
  std::string second = split;
  second.replace(second.rfind("Group  0"), 8, "Group  1");
  second.replace(second.find("Group  0", second.find("Rank  1")), 8, "Group  1");
  const ImportedRun run = from_log(settings + second + columns + row_1024 + good_end);
  EXPECT_EQ(run.records[0].identity.ranks, 2);
  const Value* groups = record::find(run.records[0].identity.params, "groups");
  ASSERT_TRUE(groups);
  EXPECT_EQ(to_text(*groups), "2");
}

TEST(NcclLog, TornRowsAndMissingEndsAreNamed) {
  const std::string head = settings + ranks + columns;
  const ImportedRun torn =
      from_log(head + "   8   2  float  sum  -1node-1:4711:4720 [0] NCCL INFO AllReduce: opCount 0\n" +
               "    34.24    0.00    0.00      0    33.65    0.00    0.00      0\n" +
               replaced(row_1024, "0.10  0\n", "0.10  0node-1:1:2 [0] NCCL WARN something\n") + row_2048 + good_end);
  EXPECT_EQ(torn.records.size(), 2u);
  EXPECT_NE(notes(torn).find("2 rows are torn by other output and left out: 8 bytes, 1024 bytes"), std::string::npos)
      << notes(torn);
  ASSERT_TRUE(torn.records[0].result.notes) << "the record says so, too";
  const ImportedRun cut = from_log(head + row_1024);
  EXPECT_NE(notes(cut).find("the end is missing"), std::string::npos);
  const ImportedRun failed = from_log(head + row_1024 + "node7: Test NCCL failure common.cu:401 'unhandled'\n");
  EXPECT_NE(notes(failed).find("it failed: node7: Test NCCL failure"), std::string::npos);
  const std::string cut_off = "[1,0]<stdout>:" + replaced(head + row_1024, "\n", "\n[1,0]<stdout>:");
  const ImportedRun of_two = from_log(cut_off + "\n[1,3]<stderr>:node7: Test NCCL failure common.cu:401 'unhandled'\n");
  EXPECT_NE(notes(of_two).find("another process failed: node7: Test NCCL failure"), std::string::npos) << notes(of_two);
}

TEST(NcclLog, PrefixesOfLaunchersAndPodsAreTakenOff) {
  const std::string log = settings + ranks + columns + row_1024 + good_end;
  for (const std::string prefix :
       {"[1,0]<stdout>:", "[prterun-a-1@1,0]<stdout>: ", "Fri Mar 14 08:00:01 2025[1,0]<stdout>:", "0: ", " 0: ",
        "[0] ", "2025-03-14T08:00:01.123456789Z ", "2025-03-14T08:00:01.123456789Z stdout F ", "[pod/launcher-x/main] ",
        "[pod/launcher-x/main] 2025-03-14T08:00:01.1Z [1,0]<stdout>:", "worker-0  | "}) {
    const ImportedRun run = from_log(prefix + replaced(log.substr(0, log.size() - 1), "\n", "\n" + prefix));
    ASSERT_EQ(run.records.size(), 2u) << prefix;
    EXPECT_EQ(notes(run), "") << prefix;
    EXPECT_EQ(run.records[0].identity.ranks, 2) << prefix;
    if (prefix.starts_with("2025")) {
      EXPECT_EQ(run.started->substr(0, 19), "2025-03-14T08:00:01");
    }
  }
  // Processes that a launcher marks are distinguished however their lines are mixed.
  std::string mixed;
  std::string_view rest = log;
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n') + 1));
    mixed += "0: " + line + "1: " + replaced(line, "10.50", "20.50");
    rest.remove_prefix(line.size());
  }
  const ImportedRun both = from_log(mixed);
  ASSERT_EQ(both.records.size(), 4u);
  EXPECT_NEAR(step_us(both.records[0]), 10.5, 1e-9);
  EXPECT_NEAR(step_us(both.records[2]), 20.5, 1e-9);
}

TEST(NcclLog, ColumnsOfNewerVersions) {
  const std::string stamped =
      replaced(replaced(columns, "#wrong\n", "#wrong   timestamp\n"), "(GB/s)\n", "(GB/s)  %Y-%m-%d %H:%M:%S\n");
  const ImportedRun run = from_log(settings + ranks + stamped +
                                   replaced(row_1024, "0.10  0\n", "0.10  0  2026-07-09 16:03:21\n") + good_end);
  ASSERT_EQ(run.records.size(), 2u);
  EXPECT_EQ(notes(run), "columns left out: timestamp\n");
  const ImportedRun cpu = from_log(settings + ranks + replaced(columns, " time", " cputime") + row_1024 + good_end);
  EXPECT_EQ(to_text(*record::find(cpu.records[0].identity.params, "time")), "cpu");
  const std::string single = replaced(columns, "#wrong", "#wrong i_min i_max i_p99 i_cv%");
  const ImportedRun spread =
      from_log(settings + ranks + single +
               "1024 256 float sum -1 18.68 56.13 56.13 0 18.00 20.10 20.05 2.10 18.35 57.14 57.14 0 17.90 19.80 19.70 "
               "1.90\n" +
               good_end);
  const record::Phase& step = *record::find(spread.records[1].result.phases, "step");
  EXPECT_DOUBLE_EQ(*step.min_ms, 0.0179);
  EXPECT_DOUBLE_EQ(*step.max_ms, 0.0198);
  EXPECT_DOUBLE_EQ(*step.cv, 0.019);
}

TEST(LogText, Utf16IsReadAsUtf8) {
  EXPECT_EQ(as_utf8(std::string("\xFF\xFE{\0}\0", 6)), "{}");
  EXPECT_EQ(as_utf8(std::string("\xFE\xFF\0a\x20\xAC\xD8\x3D\xDE\x00", 10)), "a€😀");
  EXPECT_EQ(as_utf8("\xEF\xBB\xBF{}"), "{}");
  EXPECT_THROW(as_utf8("\xFF\xFE{"), ImportError);
}

}  // namespace
}  // namespace assay::host::imports
