#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class AllReduce : public Sandbox {
 protected:
  // An experiment of small messages.
  std::vector<json> run_cases(const std::string& params, const std::string& sweep, const std::string& of_run,
                              int expected_code = 0) {
    return records_of(
        {.plugin = "all_reduce", .params = params, .measure = "warmup = 1\nsteps = 4", .run = of_run, .sweep = sweep},
        expected_code);
  }
  // An experiment that is shipped.
  std::vector<json> run_shipped(const std::string& name, std::vector<std::string> more) {
    more.insert(more.begin(), {"run", (fs::path(ASSAY_CONFIGS) / (name + ".toml")).string(), "--output", "out"});
    const RunResult result = run(more);
    EXPECT_EQ(result.exit.code, 0) << result.output;
    return cases(name);
  }
};

// 1003 fp32 elements: no multiple of 2 or 3 ranks.
TEST_F(AllReduce, EveryCollectiveIsVerifiedInPlaceAndOutOfPlace) {
  const auto records = run_cases("size_bytes = 4015",
                                 "\"run.ranks\" = [2, 3]\nin_place = [true, false]\n"
                                 "collective = [\"all_reduce\", \"reduce_scatter\", \"all_gather\", \"broadcast\"]\n"
                                 "[[sweep.exclude]]\ncollective = \"broadcast\"\nin_place = false\n",
                                 "");
  ASSERT_EQ(records.size(), 14u);
  for (const json& r : records) {
    ASSERT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["reason"];
    EXPECT_EQ(metric(r, "wrong_elements"), 0);
    const int ranks = r["axes"]["run.ranks"];
    const std::string collective = r["axes"]["collective"];
    const bool parts = collective == "reduce_scatter" || collective == "all_gather";
    EXPECT_EQ(metric(r, "message_bytes"), parts ? 4 * ranks * (1003 / ranks) : 4012) << r["axes"];
    EXPECT_EQ(metric(r, "element_count"), parts ? 1003 / ranks : 1003) << r["axes"];
    const double factor = (collective == "all_reduce" ? 2.0 : 1.0) * (ranks - 1) / ranks;
    EXPECT_DOUBLE_EQ(metric(r, "bus_bandwidth_gbs"),
                     metric(r, "algorithm_bandwidth_gbs") * (collective == "broadcast" ? 1 : factor));
    EXPECT_GT(metric(r, "algorithm_bandwidth_gbs"), 0);
    // What each rank has checked, in place and out of place, in all; and what the timed steps and one more have left.
    const int received = collective == "reduce_scatter" ? 1003 / ranks : parts ? ranks * (1003 / ranks) : 1003;
    const int times = (collective == "broadcast" ? 1 : 2) + 2;
    const std::string checked = std::to_string(received * ranks * times) + " elements";
    EXPECT_TRUE(contains(r["verify"]["text"], "and what the last timed step has left")) << r["verify"]["text"];
    EXPECT_TRUE(contains(r["verify"]["text"], "steps counted")) << r["verify"]["text"];
    EXPECT_NE(r["verify"]["text"].get<std::string>().find(checked), std::string::npos) << r["verify"]["text"];
  }
}

// 1003 elements of 2 bytes, as bits: what only travels may be of any type.
TEST_F(AllReduce, WhatIsForOneRankAloneReachesIt) {
  const auto records = run_cases("dtype = \"fp16\"\nsize_bytes = 2006",
                                 "\"run.ranks\" = [1, 2, 3]\ncollective = [\"all_to_all\", \"send_receive\"]\n", "");
  ASSERT_EQ(records.size(), 6u);
  for (const json& r : records) {
    ASSERT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["reason"];
    const int ranks = r["axes"]["run.ranks"];
    const bool parts = r["axes"]["collective"] == "all_to_all";
    EXPECT_EQ(metric(r, "message_bytes"), parts ? 2 * ranks * (1003 / ranks) : 2006) << r["axes"];
    EXPECT_EQ(metric(r, "element_count"), parts ? 1003 / ranks : 1003) << r["axes"];
    EXPECT_DOUBLE_EQ(metric(r, "bus_bandwidth_gbs"),
                     metric(r, "algorithm_bandwidth_gbs") * (parts ? double(ranks - 1) / ranks : 1));
    // The last timed step, the same once more, and once on other data.
    const int checked = 3 * ranks * (parts ? ranks * (1003 / ranks) : 1003);
    EXPECT_TRUE(contains(r["verify"]["text"], std::to_string(checked) + " elements")) << r["verify"]["text"];
    EXPECT_TRUE(contains(r["verify"]["text"], "in two buffers, and what the last timed step has left"))
        << r["verify"]["text"];
  }
}

TEST_F(AllReduce, EveryReductionOfEveryDtypeThatGlooReduces) {
  const auto records = run_cases("size_mb = 5.3",
                                 "dtype = [\"fp32\", \"bf16\"]\nreduction = [\"sum\", \"average\", \"max\"]\n"
                                 "collective = [\"all_reduce\", \"reduce_scatter\"]\n",
                                 "ranks = 3\n");
  ASSERT_EQ(records.size(), 12u);
  for (const json& r : records) {
    EXPECT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["reason"];
    EXPECT_EQ(r["verify"]["text"].get<std::string>().find("exact to the bit") == std::string::npos,
              r["axes"]["reduction"] == "average")
        << r["verify"]["text"];
  }
}

TEST_F(AllReduce, HalfPrecisionMovesAndIsNotReducedOnTheCpu) {
  const auto records = run_cases("dtype = \"fp16\"\nsize_bytes = 65542",
                                 "collective = [\"all_gather\", \"broadcast\", \"all_reduce\", \"reduce_scatter\"]\n",
                                 "ranks = 2\nallow = [\"unsupported\"]\n");
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0]["status"], "ok") << records[0]["reason"];
  EXPECT_EQ(records[1]["status"], "ok") << records[1]["reason"];
  EXPECT_EQ(records[2]["status"], "unsupported");
  EXPECT_EQ(records[3]["status"], "unsupported");
}

// A series has the figures of one of its collectives; in place each adds up the sums of the one before.
TEST_F(AllReduce, AStepOfManyCollectivesHasTheTimeOfOne) {
  const auto records =
      run_cases("size_bytes = 4012\nreduction = \"max\"",
                "[[sweep.zip]]\nrepeats = [1, 20, 20]\nwait = [\"step\", \"step\", \"each\"]\n", "ranks = 1\n");
  ASSERT_EQ(records.size(), 3u);
  for (const json& r : records) {
    ASSERT_EQ(r["verify"]["status"], "ok") << r["axes"] << r["reason"];
    EXPECT_EQ(metric(r, "message_bytes"), 4012);
    EXPECT_NEAR(metric(r, "algorithm_bandwidth_gbs"), 4.012 / metric(r, "collective_us"), 1e-6);
    EXPECT_EQ(r["metrics"]["registration"]["word"], "none");
    EXPECT_EQ(r["work"]["bytes"], 4012 * r["axes"]["repeats"].get<int>());
  }
}

// Of one kind there is nothing to measure: it is taken at once, and named. A user who names a kind gets that one.
TEST_F(AllReduce, TheModeIsTheOnlyKindOfTheCpuOrTheOneThatIsNamed) {
  const auto records = run_cases("size_bytes = 4012",
                                 "mode = [\"settings\", \"measured\", \"any_memory\", \"registered\", \"windows\"]\n",
                                 "ranks = 2\nallow = [\"unsupported\"]\n");
  ASSERT_EQ(records.size(), 5u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i]["verify"]["status"], "ok") << records[i]["axes"] << records[i]["reason"];
    EXPECT_EQ(records[i]["metrics"]["mode_taken"]["word"], "any_memory");
  }
  for (std::size_t i = 3; i < 5; ++i) {
    EXPECT_EQ(records[i]["status"], "unsupported");
    EXPECT_TRUE(contains(records[i]["reason"], "gloo has no memory to register")) << records[i]["reason"];
  }
}

TEST_F(AllReduce, AModeThatCannotBeIsRefused) {
  const RunResult twice =
      run_experiment({.plugin = "all_reduce", .params = "mode = \"measured\"\nregistered = true\n"});
  EXPECT_EQ(twice.exit.code, 2);
  EXPECT_PRED2(contains, twice.output,
               "registered = true with a mode, which names the memory, too; expected one of them");
  const RunResult engines = run_experiment({.plugin = "all_reduce", .params = "mode = \"copy_engines\"\n"});
  EXPECT_EQ(engines.exit.code, 2);
  EXPECT_PRED2(contains, engines.output, "copy engines make gatherings, not all_reduce");
}

TEST_F(AllReduce, GlooHasNoGraphsAndNoMemoryToRegister) {
  const auto records =
      run_cases("size_bytes = 4012", "execution = [\"eager\", \"graph\"]\nregistered = [false, true]\n",
                "ranks = 2\nallow = [\"unsupported\"]\n");
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0]["status"], "ok") << records[0]["reason"];
  EXPECT_EQ(records[1]["status"], "unsupported");
  EXPECT_TRUE(contains(records[1]["reason"], "gloo has no memory to register")) << records[1]["reason"];
  for (const json& r : {records[2], records[3]}) {
    EXPECT_EQ(r["status"], "unsupported");
    EXPECT_TRUE(contains(r["reason"], "gloo cannot be captured in a graph")) << r["reason"];
  }
}

TEST_F(AllReduce, OneRankHasATimeAndNoBus) {
  const auto records = run_cases("size_bytes = 4096", "", "ranks = 1\n");
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["verify"]["status"], "ok") << records[0]["reason"];
  EXPECT_EQ(metric(records[0], "bus_bandwidth_gbs"), 0);
}

TEST_F(AllReduce, TheRootsDataReachAll) {
  const auto records = run_cases("collective = \"broadcast\"\nsize_bytes = 4015", "root = [0, 1, 2, 3]\n",
                                 "ranks = 3\nallow = [\"failed\"]\n");
  ASSERT_EQ(records.size(), 4u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(records[i]["verify"]["status"], "ok") << records[i]["reason"];
  EXPECT_EQ(records[3]["status"], "failed");
  EXPECT_NE(records[3]["reason"].get<std::string>().find("root = 3"), std::string::npos) << records[3]["reason"];
}

TEST_F(AllReduce, WhatCannotBeIsRefused) {
  const auto nccl = run_cases("backend = \"nccl\"", "", "ranks = 2\nallow = [\"unsupported\"]\n");
  ASSERT_EQ(nccl.size(), 1u);
  EXPECT_EQ(nccl[0]["status"], "unsupported");
  EXPECT_NE(nccl[0]["reason"].get<std::string>().find("nccl"), std::string::npos) << nccl[0]["reason"];
  const auto small = run_cases("collective = \"all_gather\"\nsize_bytes = 7", "", "ranks = 2\nallow = [\"failed\"]\n");
  ASSERT_EQ(small.size(), 1u);
  EXPECT_EQ(small[0]["status"], "failed");
  EXPECT_NE(small[0]["reason"].get<std::string>().find("at least 8 bytes"), std::string::npos) << small[0]["reason"];
  const auto broadcast =
      run_cases("collective = \"broadcast\"\nin_place = false", "", "ranks = 2\nallow = [\"failed\"]\n");
  ASSERT_EQ(broadcast.size(), 1u);
  EXPECT_NE(broadcast[0]["reason"].get<std::string>().find("one buffer"), std::string::npos) << broadcast[0]["reason"];
  const auto graph = run_cases("execution = \"graph\"\nwait = \"each\"", "", "ranks = 2\nallow = [\"failed\"]\n");
  ASSERT_EQ(graph.size(), 1u);
  EXPECT_TRUE(contains(graph[0]["reason"], "take execution = \"eager\"")) << graph[0]["reason"];
}

// These are the columns of report 003 (results/published) and of nccl-tests.
TEST_F(AllReduce, TheExperimentsForTheCpuHaveTheirColumns) {
  const auto records = run_shipped(
      "all-reduce-cpu", {"--set", "sweep.size_mb=[0.5]", "--set", "measure.steps=100"});  // as many as a p99 needs
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
  std::ifstream table(run_folder("all-reduce-cpu") / "table.csv");
  std::string header, row;
  std::getline(table, header);
  std::getline(table, row);
  EXPECT_EQ(header.rfind("backend,run.ranks,size_mb,step.mean_ms,step.std_ms,", 0), 0u) << header;
  EXPECT_EQ(row.rfind("gloo,2,0.5,", 0), 0u) << row;
  EXPECT_EQ(row.find(",,"), std::string::npos) << row;
  const auto latencies = run_shipped("all-reduce-latency", {"--set", "sweep.size_bytes=[8, 64]", "--set",
                                                            "measure.steps=3", "--set", "run.device=cpu"});
  EXPECT_FALSE(latencies.empty());
}

}  // namespace
}  // namespace assay::test
