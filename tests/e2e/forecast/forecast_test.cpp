#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Forecast : public Sandbox {
 protected:
  RunResult forecast(std::vector<std::string> more) {
    more.insert(more.begin(), "forecast");
    return run(more);
  }
  void refused(std::vector<std::string> more, const std::string& why) {
    const RunResult result = forecast(std::move(more));
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_PRED2(contains, result.output, why);
  }
  // Gives the records of a run times that this machine's load does not decide: forecast refuses those that contradict
  // each other.
  void set_times(const std::string& name, const std::function<void(json& record)>& set) {
    const std::filesystem::path file = run_folder(name) / "cases.jsonl";
    std::ifstream in(file);
    std::string changed;
    for (std::string line; std::getline(in, line);) {
      json record = json::parse(line);
      set(record);
      changed += record.dump() + '\n';
    }
    in.close();
    std::ofstream(file) << changed;
  }
  static std::string published(const std::string& name) { return std::string(PUBLISHED) + "/" + name; }
};

// Records of two days on H200s with NVLink: each strategy of ddp, and the sharded optimizer.
TEST_F(Forecast, FourGpusAreExpectedFromTwo) {
  const RunResult result = forecast({published("h200-x2-2026-11-20"), published("h200-x4-2026-11-20"), "--from-ranks",
                                     "2", "--ranks", "2,4", "--json"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  const json reported = json::parse(result.output.substr(result.output.find('{')));
  int measured = 0;
  for (const json& family : reported["families"]) {
    EXPECT_EQ(family["from_ranks"], json::array({2}));
    const json& four = family["ranks"][1];
    ASSERT_EQ(four["ranks"], 4);
    if (!four.contains("measured_ms")) continue;
    ++measured;
    EXPECT_LT(std::abs(four["off_percent"].get<double>()), 8) << family["case"];
    EXPECT_FALSE(family["ranks"][0].contains("off_percent")) << "it is what the other is expected from";
  }
  EXPECT_EQ(measured, 6);
  ASSERT_EQ(reported["wires"].size(), 2u);
  EXPECT_NEAR(1e-9 / reported["wires"][0]["seconds_per_byte"].get<double>(), 300, 30) << "GB/s";
}

TEST_F(Forecast, ChecksItself) {
  const std::string two = published("h200-x2-2026-11-20"), four = published("h200-x4-2026-11-20");
  const RunResult result = forecast({two, four, "--check", "--json"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  const json reported = json::parse(result.output.substr(result.output.find('{')));
  ASSERT_EQ(reported["checked"].size(), 6u);
  double worst = 0;
  for (const json& row : reported["checked"]) {
    EXPECT_EQ(row["ranks"], 4);
    EXPECT_EQ(row["from_ranks"], json::array({2})) << "nothing of four ranks counts";
    const double off = row["off_percent"];
    EXPECT_NEAR(off, (row["predicted_ms"].get<double>() / row["measured_ms"].get<double>() - 1) * 100, 1e-9);
    worst = std::max(worst, std::abs(off));
    const std::string name = row["case"];
    const bool by_parameters = contains(name, "naive") || contains(name, "individual");
    EXPECT_LT(std::abs(off), by_parameters ? 8 : 5) << name;
  }
  EXPECT_DOUBLE_EQ(reported["worst_percent"].get<double>(), worst);
  const RunResult text = forecast({two, four, "--check", "--within", "8"});
  EXPECT_EQ(text.exit.code, 0) << text.output;
  EXPECT_PRED2(contains, text.output, "6 forecasts, the worst is off by 7");
  const RunResult beyond = forecast({two, four, "--check", "--within", "5"});
  EXPECT_EQ(beyond.exit.code, 1) << beyond.output;
  EXPECT_PRED2(contains, beyond.output, "more than --within 5");
  refused({two, "--check"}, "no forecast can be checked; expected cases on three ranks or more");
  refused({two, four, "--check", "--ranks", "8"}, "--check forecasts what was measured");
  refused({two, four, "--ranks", "8", "--within", "5"}, "--within is of --check");
}

// No collective of a captured step is timed.
TEST_F(Forecast, StepsOfGraphsAreExpectedFromCollectivesAlone) {
  const RunResult result = forecast({published("h200-x2-2026-11-24"), "--ranks", "2,4", "--json"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  const json reported = json::parse(result.output.substr(result.output.find('{')));
  std::set<std::string> workloads;
  for (const json& family : reported["families"]) {
    if (!contains(family["link"], "in graphs")) continue;
    const std::string name = family["case"];
    workloads.insert(name.substr(0, name.find(' ')));
    const json &two = family["ranks"][0], &four = family["ranks"][1];
    EXPECT_NEAR(two["step_ms"].get<double>() / two["measured_ms"].get<double>(), 1, 1e-9) << name;
    EXPECT_GT(four["communication_ms"], two["communication_ms"]) << name;
    EXPECT_PRED2(contains, family["assumed"].dump(), "in a graph no collective is timed") << name;
  }
  EXPECT_EQ(workloads, (std::set<std::string>{"ddp", "fsdp", "sharded_optimizer", "tensor_parallel"}));
}

TEST_F(Forecast, ARunOfOnesOwnSaysWhatItAssumes) {
  run_experiment({.plugin = "ddp",
                  .name = "steps",
                  .params = "size = \"tiny\"\ncontext_length = 16\nbatch_size = 1\nstrategy = \"flat\"",
                  .run = "threads = 1",
                  .sweep = "\"run.ranks\" = [1, 2]"});
  run_experiment(
      {.plugin = "all_reduce", .name = "wire", .run = "ranks = 2", .sweep = "size_bytes = [64, 65536, 1048576]"});
  set_times("steps", [](json& record) {
    const bool is_alone = record["axes"]["run.ranks"] == 1;
    record["phases"]["step"]["mean_ms"] = is_alone ? 6 : 10;
    record["metrics"]["communication_ms"]["value"] = record["metrics"]["exposed_ms"]["value"] = is_alone ? 0 : 3;
    if (!is_alone) record["silent"]["step_mean_ms"] = 7;
  });
  // 10 us a message, of which a large all-reduce of two ranks has three, and 5 GB/s.
  set_times("wire", [](json& record) {
    const double bytes = record["axes"]["size_bytes"], seconds = (bytes > 64 ? 30e-6 : 10e-6) + bytes / 5e9;
    record["metrics"]["algorithm_bandwidth_gbs"]["value"] = bytes / seconds / 1e9;
  });
  const RunResult result =
      forecast({run_folder("steps").string(), run_folder("wire").string(), "--ranks", "1,2,4,1024"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  for (const char* text :
       {"Messages, as measured on ", "direct: ", "ddp, from records on 1, 2 ranks:", "efficiency", "tokens",
        "measured_ms", "1,024", "assumed:", "take turns on its processors", "--ranks-per-machine"})
    EXPECT_PRED2(contains, result.output, text);
  const RunResult network =
      forecast({run_folder("steps").string(), run_folder("wire").string(), "--ranks", "1024", "--ranks-per-machine",
                "8", "--network-gbytes-per-s", "25", "--network-latency-us", "5"});
  EXPECT_EQ(network.exit.code, 0);
  EXPECT_PRED2(contains, network.output, "beyond 8 ranks messages cross a network");
}

TEST_F(Forecast, MistakesAreNamed) {
  const std::string steps = published("h200-x2-2026-11-20/ddp-buckets"), wire = published("h200-x2-2026-11-20");
  refused({}, "no run is given");
  refused({wire}, "--ranks is missing");
  for (const char* ranks : {"0", "8,", "eight", "8.5", "-2", "99999999999"})
    refused({wire, std::string("--ranks=") + ranks}, "expected numbers of ranks from 1 to 1048576");
  refused({wire, "--ranks", "8", "--from-ranks", "3"},
          "no record on two ranks or more (of those on the 3 ranks of --from-ranks), and one rank does not show how "
          "its collectives run; name numbers of ranks that RUN has");
  refused(
      {steps, published("h200-x2-2026-11-22/encoder-decoder-scaling"), "--ranks", "8"},
      "no record shows what messages cost on NVIDIA H200, nccl; expected all_reduce there, on two ranks or more, over "
      "several sizes: 'assay run configs/all-reduce.toml'");
  refused({published("h200-2026-11-24"), "--ranks", "8"},
          "expected cases of ddp that are ok, as 'assay run configs/ddp-strategies.toml'");
  refused({wire, "--ranks", "8", "--ranks-per-machine", "8"}, "belong together");
  refused(
      {wire, "--ranks", "8", "--ranks-per-machine", "8", "--network-gbytes-per-s", "0", "--network-latency-us", "5"},
      "--network-gbytes-per-s is 0; expected a number above 0");
  refused({"nowhere", "--ranks", "8"}, "nowhere");
}

}  // namespace
}  // namespace assay::test
