// [run] ranks in its forms, and what belongs to it: sweeps, resumption, binding, the agreement on the number of steps.
#include <sched.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "ranks_sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class RanksSetting : public RanksSandbox {
 protected:
  // The record of an experiment of one case.
  json only_case(const std::string& ranks, std::vector<std::string> more = {}) {
    const RunResult result =
        run_experiment({.plugin = "faulty_rank", .params = "elements = 0", .run = "ranks = " + ranks}, std::move(more));
    const auto records = cases();
    EXPECT_EQ(records.size(), 1u) << result.output;
    return records.empty() ? json::object() : records.back();
  }
};

TEST_F(RanksSetting, AutoIsOneAlone) {
  const json record = only_case("\"auto\"");
  EXPECT_EQ(record["status"], "ok") << record.dump(2);
  EXPECT_EQ(record["ranks"], 1);
  EXPECT_FALSE(record.contains("by_rank")) << record.dump(2);
}

// The NUMA nodes with a processor that this process may use; 1 where the kernel does not say.
int usable_nodes() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  std::set<std::string> nodes;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    std::error_code error;
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
    for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
      const std::string name = i->path().filename();
      if (name.starts_with("node") && name.size() > 4) nodes.insert(name);
    }
  }
  return nodes.empty() ? 1 : static_cast<int>(nodes.size());
}

// "all" is one rank for each NUMA node of the CPU.
TEST_F(RanksSetting, AllIsWhatTheMachineHas) {
  const json record = only_case("\"all\"");
  EXPECT_EQ(record["status"], "ok") << record.dump(2);
  EXPECT_EQ(record["ranks"], usable_nodes());
}

TEST_F(RanksSetting, SeveralInOneProcessAreUnsupported) {
  const json record = only_case("2", {"--in-process"});
  EXPECT_EQ(record["status"], "unsupported") << record.dump(2);
  EXPECT_PRED2(contains, record.value("reason", ""), "several ranks need a worker process each");
}

TEST_F(RanksSetting, MayBeSweptWithTheRanksBoundToCores) {
  const RunResult result =
      run_experiment({.plugin = "faulty_rank", .run = "bind = \"cores\"", .sweep = "\"run.ranks\" = [1, 2, 3]"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 3u) << result.output;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i]["status"], "ok") << records[i].dump(2);
    EXPECT_EQ(records[i]["ranks"], i + 1);
    EXPECT_EQ(records[i].value("by_rank", json::array()).size(), i == 0 ? 0 : i + 1) << records[i].dump(2);
  }
}

TEST_F(RanksSetting, AResumedRunRepeatsWhatFailedAlone) {
  const ExperimentText text{
      .plugin = "faulty_rank", .params = "fault = \"kill\"", .run = "ranks = 2", .sweep = "fault_rank = [8, 1, 9]"};
  EXPECT_EQ(run_experiment(text).exit.code, 1);
  const std::vector<std::string> before = case_lines();
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(run(run_arguments({"--resume"})).exit.code, 1);
  const std::vector<std::string> after = case_lines();
  ASSERT_EQ(after.size(), 4u);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin())) << "a finished line was changed";
  const json repeated = json::parse(after.back());
  EXPECT_EQ(repeated["status"], "crashed");
  EXPECT_EQ(repeated["axes"]["fault_rank"], 1);
}

// Each rank would stop elsewhere by itself: they measure other times. With another number of steps the ranks would wait
// for one another in the collective, and the merged record would be refused.
TEST_F(RanksSetting, RanksOfDifferentSpeedAgreeOnTheNumberOfSteps) {
  std::string seeds;
  for (int i = 0; i < 25; ++i) seeds += (i ? ", " : "") + std::to_string(i);
  const RunResult result = run_experiment(
      {.plugin = "faulty_rank",
       .params = "slower_ms = 1",
       .measure = "warmup = 1\nuntil = { relative_error = 0.05, confidence = 0.9, min_steps = 3, max_steps = 20 }\n"
                  "timeout = \"60s\"",
       .run = "ranks = 3",
       .sweep = "\"measure.sync\" = [true, false]\n\"run.seed\" = [" + seeds + "]"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 50u) << result.output;
  std::map<std::int64_t, int> counts;
  for (const json& record : records) {
    SCOPED_TRACE(record.dump(2));
    ASSERT_EQ(record["status"], "ok");
    const std::int64_t n = record["phases"]["step"]["n"];
    EXPECT_GE(n, 3);
    EXPECT_LE(n, 20);
    EXPECT_GE(record["metrics"]["steps_run"]["value"], static_cast<double>(n + 1)) << "and those that settle";
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_FALSE(rank_of(record, rank).value("metrics", json::object()).contains("steps_run")) << "the ranks differ";
    ++counts[n];
  }
  std::printf("steps:");
  for (const auto& [n, cases] : counts) std::printf(" %lld (%d)", static_cast<long long>(n), cases);
  std::printf("\n");
}

TEST_F(RanksSetting, SixtyFourRanksOfNothing) {
  const json record = only_case("64");
  ASSERT_EQ(record["status"], "ok") << record.dump(2);
  EXPECT_EQ(record["ranks"], 64);
  EXPECT_EQ(record["by_rank"].size(), 64u);
  std::printf("64 ranks: %.2f s, of which the longest set-up %.3f s\n", record["wall_s"].value("case", 0.0),
              record["wall_s"].value("setup", 0.0));
}

}  // namespace
}  // namespace assay::test
