#include "run/node_ready_check.hpp"
#include "run/node_health_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "common/sha256.hpp"
#include "common/usage_error.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::run {
namespace {

class NodeReadyCheck : public ::testing::Test {
 protected:
  NodeReadyCheck() {
    question_.folder = folder_.path(), question_.node = "n1";
    question_.plan.promised.batch_id = "id7", question_.plan.cases = {0};
    question_.environment = [this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    };
    question_.find_device = [this](const std::string&) { return found_; };
    found_.status = record::Status::ok;
    found_.device.kind = "cpu";
    loaded_.loaded.emplace();
    experiment::Case c;
    c.run.device = "auto";
    loaded_.loaded->experiment.cases.push_back(c);
  }
  std::vector<std::string> problems() const { return check_node_ready(question_, loaded_).problems; }

  assay::test::TemporaryFolder folder_;
  std::map<std::string, std::string> variables_{{"ASSAY_BATCH", "id7"}, {"IB", "mlx5"}};
  worker::FoundDevice found_;
  LoadResult loaded_;
  NodeReadyQuestion question_;
};

TEST_F(NodeReadyCheck, AllIsWell) {
  question_.plan.promised.environment = {"IB", "IB=mlx5"};
  const shard::NodeReady ready = check_node_ready(question_, loaded_);
  EXPECT_TRUE(ready.is_ready()) << ready.problems.front();
  EXPECT_GT(ready.memory_available_mib.value_or(0), 0);
  EXPECT_GT(ready.results_free_mib.value_or(0), 0);
}

TEST_F(NodeReadyCheck, NamesWhatTheEnvironmentLacks) {
  variables_.erase("ASSAY_BATCH");
  question_.plan.promised.environment = {"CUDA_HOME", "IB=mlx6"};
  const auto found = problems();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[0].find("--export"), std::string::npos);
  EXPECT_NE(found[1].find("CUDA_HOME is not set"), std::string::npos);
  EXPECT_NE(found[2].find("IB is 'mlx5'"), std::string::npos);
}

TEST_F(NodeReadyCheck, ASiteWithGpusMeasuresGpus) {
  EXPECT_TRUE(problems().empty()) << "a site without GPUs takes the processors";
  question_.plan.promised.has_gpus = true;
  found_.note = "device = \"auto\" took the cpu: no usable CUDA device";
  const auto found = problems();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("finds no GPU"), std::string::npos);
  EXPECT_NE(found[0].find("no usable CUDA device"), std::string::npos);
  loaded_.loaded->experiment.cases[0].run.device = "cpu";
  EXPECT_TRUE(problems().empty()) << "it was asked for";
  loaded_.loaded->experiment.cases[0].run.device = "auto";
  found_.device.kind = "cuda";
  EXPECT_TRUE(problems().empty());
}

TEST_F(NodeReadyCheck, AnImageHasTheProgramThatSubmitted) {
  question_.plan.promised.program_hash = sha256_of_file("/proc/self/exe");
  EXPECT_TRUE(problems().empty());
  question_.plan.promised.program_hash = std::string(64, '0');
  ASSERT_EQ(problems().size(), 1U);
  EXPECT_NE(problems()[0].find("is another program than the one that submitted"), std::string::npos);
}

TEST_F(NodeReadyCheck, APluginThatIsNotThereIsAProblem) {
  EXPECT_EQ(check_node_ready(question_, {std::nullopt, {{"x.toml", 3, 1, "no plugin"}}}).problems,
            std::vector<std::string>{"x.toml:3:1: no plugin"});
}

TEST(NodeHealth, LimitsAndStatusesDecide) {
  record::CaseRecord fast;
  fast.identity.axes = {{"check", Value(std::string("copy"))}};
  fast.result.status = record::Status::ok;
  fast.result.rates = record::Rates{1500.0, 80.0, {}};
  EXPECT_TRUE(judge_node("n1", {fast}, {"/h.toml", 1.5, 80.0}).is_healthy());
  const auto slow = judge_node("n1", {fast}, {"/h.toml", 1.6, 81.0});
  EXPECT_EQ(slow.problems, (std::vector<std::string>{"check=copy: tflop_per_s is 1.5, and the site asks for 1.6",
                                                     "check=copy: gbytes_per_s is 80, and the site asks for 81"}));
  record::CaseRecord wrong = fast;
  wrong.result.status = record::Status::wrong_result, wrong.result.reason = "rank 1";
  EXPECT_EQ(judge_node("n1", {fast, wrong}, {"/h.toml"}).problems,
            std::vector<std::string>{"check=copy: wrong_result: rank 1"});
  wrong.result.status = record::Status::unsupported;
  EXPECT_TRUE(judge_node("n1", {fast, wrong}, {"/h.toml"}).is_healthy());
  EXPECT_FALSE(judge_node("n1", {wrong}, {"/h.toml"}).is_healthy()) << "nothing was looked at";
}

// Or a check without figures would pass every limit.
TEST(NodeHealth, ALimitThatNothingWasHeldToIsAProblem) {
  record::CaseRecord copy;
  copy.identity.axes = {{"check", Value(std::string("copy"))}};
  copy.result.status = record::Status::ok;
  EXPECT_TRUE(judge_node("n1", {copy}, {"/h.toml"}).is_healthy()) << "its status is all that the site asks for";
  EXPECT_EQ(
      judge_node("n1", {copy}, {"/h.toml", {}, 80.0}).problems,
      (std::vector<std::string>{"check=copy: its record has no rate, and the site asks for rates",
                                "the site asks for gbytes_per_s of 80, and no record of the health check has it"}));
  copy.result.rates = record::Rates{std::nullopt, 90.0, {}};
  EXPECT_TRUE(judge_node("n1", {copy}, {"/h.toml", {}, 80.0}).is_healthy());
  EXPECT_EQ(judge_node("n1", {copy}, {"/h.toml", 1.5, 80.0}).problems.size(), 1U);
  copy.result.rates->gbytes_per_s = std::nan("");
  const auto odd = judge_node("n1", {copy}, {"/h.toml"});
  EXPECT_EQ(odd.problems, std::vector<std::string>{"check=copy: gbytes_per_s is nan, which is no figure"});
  EXPECT_TRUE(odd.figures.empty());
}

// Else every healthy node is left out where the site's file was moved.
TEST(NodeHealth, ACheckThatCannotStartMarksNoNode) {
  assay::test::TemporaryFolder folder;
  try {
    check_node_health(folder.path(), "n1", {"7_0", 0}, {(folder.path() / "none.toml").string()});
    ADD_FAILURE() << "it has an answer";
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("health check cannot start: "), std::string::npos) << e.what();
  }
  EXPECT_FALSE(shard::read_node_health(folder.path(), "n1").has_value());
  EXPECT_TRUE(shard::unhealthy_nodes(folder.path()).empty());
}

TEST(NodeHealth, IsKeptForTheBatch) {
  assay::test::TemporaryFolder folder;
  EXPECT_FALSE(shard::read_node_health(folder.path(), "n1"));
  shard::write_node_health(folder.path(), {"n1", "70", {"too slow", "wrong"}, {{"copy", 2.5}}, 1000});
  shard::write_node_health(folder.path(), {"n2", "71", {}, {}, 1000});
  const auto read = shard::read_node_health(folder.path(), "n1");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->is_healthy());
  EXPECT_EQ(read->figures.at("copy"), 2.5);
  EXPECT_TRUE(shard::read_node_health(folder.path(), "n2")->is_healthy());
  const auto unhealthy = shard::unhealthy_nodes(folder.path());
  ASSERT_EQ(unhealthy.size(), 1U);
  EXPECT_EQ(unhealthy[0].node + ": " + unhealthy[0].reason, "n1: too slow; wrong");
  std::filesystem::remove(folder.path() / "unhealthy" / "n1");
  EXPECT_FALSE(shard::read_node_health(folder.path(), "n1")) << "it was repaired";
  EXPECT_EQ(shard::batch_of_shard("/r/batch/shards/0-0003"), "/r/batch");
  EXPECT_EQ(shard::batch_of_shard("/r/batch/shards/0-0003/"), "/r/batch");
}

}  // namespace
}  // namespace assay::host::run
