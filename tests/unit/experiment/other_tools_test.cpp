// What a user of another tool gets to hear: names of keys and of devices that are others here.
#include "demo_workload.hpp"

namespace assay::host::experiment::test {
namespace {

std::string answer(const std::vector<std::string>& set) {
  const auto messages = lines(parse(experiment_text(), set));
  EXPECT_EQ(messages.size(), 1u) << testing::PrintToString(messages);
  return messages.empty() ? "" : messages[0];
}

TEST(KeysOfOtherTools, AreKnownOnTheCommandLine) {
  EXPECT_TRUE(answer({"nhead=16"}).ends_with("; did you mean 'heads'?")) << answer({"nhead=16"});
  EXPECT_TRUE(answer({"seq_len=16"}).ends_with("; did you mean 'context_length'?")) << answer({"seq_len=16"});
  EXPECT_TRUE(answer({"epochs=5"}).ends_with("; did you mean 'measure.steps'?")) << answer({"epochs=5"});
  EXPECT_TRUE(answer({"nproc_per_node=2"}).ends_with("; did you mean 'run.ranks'?")) << answer({"nproc_per_node=2"});
  EXPECT_TRUE(answer({"measure.epochs=5"}).ends_with("; did you mean 'steps'?")) << answer({"measure.epochs=5"});
  EXPECT_TRUE(answer({"sweep.nhead=[4, 8]"}).ends_with("; did you mean 'heads'?")) << answer({"sweep.nhead=[4, 8]"});
}

TEST(KeysOfOtherTools, AreKnownInAFileAndInAFilter) {
  const auto in_file = lines(parse(experiment_text("warmup_epochs = 1\n[output]\ncolumns = [\"nhead\"]\n")));
  ASSERT_EQ(in_file.size(), 2u) << testing::PrintToString(in_file);
  EXPECT_TRUE(in_file[0].ends_with("; did you mean 'measure.warmup'?")) << in_file[0];
  EXPECT_TRUE(in_file[1].ends_with("; did you mean 'heads'?")) << in_file[1];
  const auto in_filter = lines(parse(experiment_text(), {}, {"model_size=small"}));
  ASSERT_EQ(in_filter.size(), 1u);
  EXPECT_TRUE(in_filter[0].ends_with("; did you mean 'size'?")) << in_filter[0];
}

struct Device {
  const char* name;
  std::string answer;
};

TEST(DevicesOfOtherTools, AreAnsweredInWords) {
  const std::string use = " are not supported: use \"cpu\" on this machine, or \"cuda\" on one with an NVIDIA GPU";
  const std::vector<Device> devices{
      {"mps", "; Apple GPUs" + use},
      {"MPS", "; Apple GPUs" + use},
      {"rocm", "; AMD GPUs" + use},
      {"hip:1", "; AMD GPUs" + use},
      {"xpu", "; Intel GPUs" + use},
      {"tpu", "; accelerators other than NVIDIA GPUs" + use},
      {"gpu", "; did you mean 'cuda'?"},
      {"cpu:0", "; did you mean 'cpu'?"},
      {"cuda:1", "; did you mean 'cuda'? Choose the GPU with CUDA_VISIBLE_DEVICES=1 in the environment"},
      {"cdua", "; did you mean 'cuda'?"},
      {"abacus", "expected one of auto, cpu, cuda (default auto)"}};
  for (const Device& device : devices) {
    const std::string text = answer({std::string("run.device=\"") + device.name + "\""});
    EXPECT_NE(text.find("expected one of auto, cpu, cuda (default auto)"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(device.answer)) << text;
  }
  const auto as_axis = lines(parse(experiment_text("[sweep]\n\"run.device\" = [\"cpu\", \"mps\"]\n")));
  ASSERT_EQ(as_axis.size(), 1u);
  EXPECT_TRUE(as_axis[0].ends_with("; Apple GPUs" + use)) << as_axis[0];
}

}  // namespace
}  // namespace assay::host::experiment::test
