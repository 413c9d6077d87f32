#include "run/node_ready_check.hpp"

#include <gtest/gtest.h>

#include <map>

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

TEST_F(NodeReadyCheck, APluginThatIsNotThereIsAProblem) {
  EXPECT_EQ(check_node_ready(question_, {std::nullopt, {{"x.toml", 3, 1, "no plugin"}}}).problems,
            std::vector<std::string>{"x.toml:3:1: no plugin"});
}

}  // namespace
}  // namespace assay::host::run
