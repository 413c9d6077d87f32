#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/host_process.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Ddp : public testing::Test {
 protected:
  Ddp() : folder_(fs::temp_directory_path() / ("assay_ddp_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Ddp() override { fs::remove_all(folder_); }

  // Runs a model of two layers on two ranks; returns the records.
  std::vector<json> run(const std::string& params, const std::string& sweep) {
    std::ofstream(folder_ / "x.toml")
        << "schema = 1\nname = \"x\"\n[workload]\nplugin = \"ddp\"\n[workload.params]\nsize = \"tiny\"\n"
           "vocab_size = 500\nbatch_size = 2\ncontext_length = 32\n"
        << params << "\n[sweep]\n"
        << sweep << "\n[measure]\nwarmup = 1\nsteps = 2\n[run]\ndevice = \"cpu\"\nranks = 2\n";
    HostProcess host({"run", "x.toml", "--output", "results"}, folder_, folder_ / "output.txt");
    std::ostringstream output;
    const auto exit = host.wait();
    output << std::ifstream(folder_ / "output.txt").rdbuf();
    EXPECT_EQ(exit.value_or(HostExit{}).code, 0) << output.str();
    EXPECT_TRUE(all_descendants_are_gone());
    std::vector<json> records;
    std::ifstream lines(folder_ / "results/x/latest/cases.jsonl");
    for (std::string line; std::getline(lines, line);) records.push_back(json::parse(line));
    return records;
  }
  fs::path folder_;
};

TEST_F(Ddp, EveryStrategyTrainsTheSameModel) {
  const auto records =
      run("bucket_mb = 1", "strategy = [\"naive\", \"flat\", \"overlap_individual\", \"overlap_bucketed\"]");
  ASSERT_EQ(records.size(), 4u);
  std::map<std::string, double> collectives;
  for (const json& record : records) {
    const std::string strategy = record["axes"]["strategy"];
    ASSERT_EQ(record["status"], "ok") << record["reason"];
    EXPECT_EQ(record["verify"]["status"], "ok");
    EXPECT_NE(record["verify"]["text"].get<std::string>().find("weights of 2 ranks identical to the bit"),
              std::string::npos);
    EXPECT_NE(record["verify"]["text"].get<std::string>().find("against a single process"), std::string::npos);
    const json& metrics = record["metrics"];
    EXPECT_EQ(metrics["communication_bytes"]["value"], 4 * metrics["parameters"]["value"].get<std::int64_t>());
    EXPECT_GT(metrics["communication_ms"]["value"], 0);
    // Averages of two numbers do not depend on the piece in which they travel.
    EXPECT_EQ(metrics["loss"]["value"], records[0]["metrics"]["loss"]["value"]) << strategy;
    for (const char* phase : {"forward", "backward", "communication_wait", "optimizer"})
      EXPECT_TRUE(record["phases"].contains(phase)) << phase;
    collectives[strategy] = metrics["collectives"]["value"];
  }
  EXPECT_EQ(collectives["naive"], 21);
  EXPECT_EQ(collectives["flat"], 1);
  EXPECT_EQ(collectives["overlap_individual"], 21);
  EXPECT_GT(collectives["overlap_bucketed"], 1);
  EXPECT_LT(collectives["overlap_bucketed"], 21);
}

TEST_F(Ddp, EveryPrecisionAndOptimizerIsVerified) {
  const auto records = run("", "precision = [\"fp32\", \"bf16\", \"bf16_pure\"]\noptimizer = [\"adamw\", \"sgd\"]");
  ASSERT_EQ(records.size(), 6u);
  for (const json& record : records) {
    EXPECT_EQ(record["status"], "ok") << record["reason"];
    const std::int64_t width = record["axes"]["precision"] == "fp32" ? 4 : 2;
    const json& metrics = record["metrics"];
    EXPECT_EQ(metrics["communication_bytes"]["value"], width * metrics["parameters"]["value"].get<std::int64_t>());
  }
}

}  // namespace
}  // namespace assay::test
