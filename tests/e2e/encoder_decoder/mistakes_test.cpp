// What the encoder_decoder plugin refuses, and in which words.
#include "encoder_decoder_sandbox.hpp"

namespace assay::test {
namespace {

class EncoderDecoderMistakes : public EncoderDecoderSandbox {
 protected:
  void expect_refusal(const std::string& params, const std::string& status, const std::vector<std::string>& parts,
                      const std::string& run = "") {
    ExperimentText text{
        .plugin = "encoder_decoder", .params = params, .run = "threads = 1\nallow = [\"failed\"]\n" + run};
    const nlohmann::json record = run_badly(text, status == "failed" ? 0 : 1);
    EXPECT_EQ(record["status"], status) << params;
    for (const std::string& part : parts) EXPECT_PRED2(contains, record["reason"].get<std::string>(), part);
  }
};

TEST_F(EncoderDecoderMistakes, AModelThatCannotBe) {
  expect_refusal("d_model = 30", "failed", {"create: invalid argument", "d_model 30", "heads 4"});
  expect_refusal("sequence_length = 1", "failed", {"sequence length 1", "at least 2"});
}

TEST_F(EncoderDecoderMistakes, APrecisionThatTheDeviceDoesNotHave) {
  expect_refusal("amp = \"fp16\"", "unsupported", {"amp \"fp16\"", "\"cpu\"", "\"bf16\" and \"off\""});
}

TEST_F(EncoderDecoderMistakes, LessThanOneBatch) {
  const std::string params = "batch_size = 16\nnum_samples = 15\ndata_dir = \"data\"";
  expect_refusal(params, "failed", {"create: invalid argument", "num_samples 15", "batch_size 16 on 1 rank)"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "data")) << "a data set that cannot be used was begun";
}

TEST_F(EncoderDecoderMistakes, MoreShardsThanSamples) {
  expect_refusal("batch_size = 1\nnum_samples = 3\nnum_shards = 4\ndata_dir = \"data\"\nencoder_layers = 1", "failed",
                 {"4 shards", "at most one for each of its 3 samples"});
}

TEST_F(EncoderDecoderMistakes, AFileWhereTheFolderShouldBe) {
  expect_refusal("batch_size = 1\nencoder_layers = 1\ndata_dir = \"x.toml\"", "failed",
                 {"x.toml: is a file; a data set needs a folder"});
}

TEST_F(EncoderDecoderMistakes, TheFullSetAndANumberOfSamples) {
  const auto notes_on = [this](const std::string& params) {
    const auto records = run_well(small(params));
    EXPECT_EQ(records.size(), 1u);
    return records.empty() ? "" : records[0]["notes"].dump();
  };
  EXPECT_PRED2(contains, notes_on("dataset = \"full\"\nnum_samples = 8"), "num_samples = 8 says how many samples");
  EXPECT_FALSE(contains(notes_on("num_samples = 8"), "num_samples"));
}

TEST_F(EncoderDecoderMistakes, AWordThatIsNone) {
  const RunResult result = run_experiment({.plugin = "encoder_decoder", .params = "amp = \"int8\""});
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_PRED2(contains, result.output, "int8");
  EXPECT_PRED2(contains, result.output, "fp16");
}

}  // namespace
}  // namespace assay::test
