// `ok` means that every check was made: what records say where one could not be, or where something is wrong that only
// one of them sees.
#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Verification : public Sandbox {
 protected:
  Verification() { set_variable("ASSAY_DEVICE_PATH", TROUBLED_CPU_FOLDER); }

  void have_blocks_of(int mib) {
    set_variable("TROUBLED_CPU_LARGEST_BLOCK", std::to_string(static_cast<std::int64_t>(mib) << 20));
  }
  json record_of(const ExperimentText& text, int expected_code = 0) {
    const std::vector<json> records = records_of(text, expected_code);
    EXPECT_EQ(records.size(), 1u);
    return records.empty() ? json{{"status", ""}, {"reason", ""}, {"verify", {{"status", ""}, {"text", ""}}}}
                           : records[0];
  }
  void find_updates_that_are_none(const std::string& params) {
    const std::string shape = "batch_size = 2\ncontext_length = 16\noptimizer = \"sgd\"\n";
    ExperimentText text = decoder("ddp", shape + params, 2);
    text.run += "\nallow = [\"unsupported\"]";
    const json sound = record_of(text);
    if (sound["status"] == "unsupported") GTEST_SKIP() << "this CPU has no products in bf16";
    EXPECT_EQ(sound["verify"]["status"], "ok") << sound["reason"];
    EXPECT_PRED2(contains, sound["verify"]["text"], "of 21 parameters within");
    EXPECT_PRED2(contains, sound["verify"]["text"], "weights of 21 of them moved by more than that");
    set_variable("TROUBLED_CPU_BREAKS", "sgd");
    const json broken = record_of(text, 1);
    EXPECT_EQ(broken["status"], "wrong_result");
    EXPECT_PRED2(contains, broken["reason"], "after update 37 a weight of");
  }
  static ExperimentText decoder(const std::string& plugin, const std::string& params, int ranks = 1, int layers = 2,
                                int d_ff = 64) {
    return {.plugin = plugin,
            .params = "d_model = 32\nd_ff = " + std::to_string(d_ff) + "\nlayers = " + std::to_string(layers) +
                      "\nheads = 2\nvocab_size = 96\n" + params,
            .measure = "warmup = 0\nsteps = 1",
            .run = "threads = 1\nranks = " + std::to_string(ranks)};
  }
};

// Scores of two sequences of 384 tokens, by two heads, take 2.25 MiB, and as much for their gradient; what is timed
// makes none, and holds 1.2 MiB.
const std::string long_context = "batch_size = 2\ncontext_length = 384\n";

TEST_F(Verification, OfADecoderWhoseOtherPathDoesNotFitIsPartial) {
  have_blocks_of(2);
  const json none = record_of(decoder("decoder", long_context, 1, 1));
  EXPECT_EQ(none["verify"]["status"], "partial") << none["verify"] << none["reason"];
  EXPECT_PRED2(contains, none["verify"]["text"], "there is no memory for one sequence");
  const json forward = record_of(decoder("decoder", long_context + "pass = \"forward\"\n", 1, 1));
  EXPECT_EQ(forward["verify"]["status"], "partial") << forward["verify"] << forward["reason"];
  EXPECT_PRED2(contains, forward["verify"]["text"], "not checked: fused path against the unfused one, for whose ");
}

TEST_F(Verification, OfAnEncoderDecoderWhoseOtherPathDoesNotFitIsPartial) {
  have_blocks_of(5);
  const json r = record_of({.plugin = "encoder_decoder",
                            .params = "d_model = 32\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nd_ff = 64\n"
                                      "sequence_length = 512\nvocab_size = 64\nbatch_size = 2\nnum_samples = 2\n"
                                      "execution = \"graph\"\nattention = \"flash\"\n",
                            .measure = "warmup = 0\nsteps = 1",
                            .run = "threads = 1"});
  EXPECT_EQ(r["status"], "ok") << r["reason"];
  EXPECT_EQ(r["verify"]["status"], "partial") << r["verify"];
  EXPECT_PRED2(contains, r["verify"]["text"], "not checked: without dropout, fused path against the unfused one");
}

TEST_F(Verification, WhereTheOtherPathDoesNotFitIsOfFewerSequencesOrPartial) {
  for (const std::string plugin : {"decoder", "ddp", "sharded_optimizer", "fsdp"}) {
    have_blocks_of(4);
    const json fewer = record_of(decoder(plugin, long_context, plugin == "decoder" ? 1 : 2, 1));
    EXPECT_EQ(fewer["verify"]["status"], "ok") << fewer["verify"] << fewer["reason"];
    EXPECT_PRED2(contains, fewer["verify"]["text"], "of the first 1 of 2 sequences of each rank, ");
    if (plugin == "decoder") continue;
    have_blocks_of(2);
    const json none = record_of(decoder(plugin, long_context, 2, 1));
    EXPECT_EQ(none["verify"]["status"], "partial") << none["verify"] << none["reason"];
    EXPECT_PRED2(contains, none["verify"]["text"], "there is no memory for one sequence");
  }
}

// The parts fit, and what they are parts of does not.
TEST_F(Verification, OfPartsWhoseWholeModelDoesNotFitIsPartial) {
  have_blocks_of(2);
  for (const std::string plugin : {"fsdp", "tensor_parallel"}) {
    const json r = record_of(decoder(plugin, "batch_size = 1\ncontext_length = 8\noptimizer = \"sgd\"\n", 2, 12, 512));
    EXPECT_EQ(r["status"], "ok") << r["reason"];
    EXPECT_EQ(r["verify"]["status"], "partial") << r["verify"];
    EXPECT_PRED2(contains, r["verify"]["text"], "there is no memory for the whole model");
  }
}

// Two tiled attentions would agree on it.
TEST_F(Verification, OfTiledAttentionThatIsWrongInALongContextFindsIt) {
  set_variable("TROUBLED_CPU_BREAKS", "attention");
  for (const std::string plugin : {"decoder", "ddp"}) {
    const json r = record_of(decoder(plugin, "batch_size = 1\ncontext_length = 1100\n"), 1);
    EXPECT_EQ(r["status"], "wrong_result");
    EXPECT_PRED2(contains, r["reason"], "fused path against the unfused one: loss differs by");
  }
}

// At these rates updates are less than half a unit of nearly every weight: what does nothing looks the same.
TEST_F(Verification, OfUpdatesThatAreLessThanRoundingFindsThoseThatAreNone) {
  find_updates_that_are_none("precision = \"fp32\"\nlr = 1e-10\n");
}
TEST_F(Verification, OfUpdatesInBf16ThatAreLessThanRoundingFindsThoseThatAreNone) {
  find_updates_that_are_none("precision = \"bf16_pure\"\nlr = 1e-6\n");
}

TEST_F(Verification, OfADeepDecoderHoldsItsFirstLayersAgainstFloat64) {
  const json r = record_of(decoder("decoder", "batch_size = 2\ncontext_length = 16\n", 1, 6));
  EXPECT_EQ(r["verify"]["status"], "ok") << r["reason"];
  EXPECT_PRED2(contains, r["verify"]["text"], "4 of 6 layers against float64: loss differs by");
}

// The case fits, and its verification does not: what is named is what was needed until then, and no limit that is
// enough.
TEST_F(Verification, WithoutRoomBelowTheMemoryLimitSaysALowerBoundOfWhatItNeeds) {
  const json r = record_of({.plugin = "decoder",
                            .params = "size = \"tiny\"\nvocab_size = 20000\nprecision = \"fp32\"\nbatch_size = 2\n"
                                      "context_length = 16\n",
                            .measure = "warmup = 1\nsteps = 1",
                            .run = "threads = 1\nmemory_limit = \"130MiB\""},
                           1);
  EXPECT_EQ(r["status"], "oom");
  EXPECT_EQ(r["stage"], "verify");
  EXPECT_PRED2(contains, r["reason"], "of its verification. Up to here it needs a limit of more than ");
  EXPECT_PRED2(contains, r["reason"], " MiB, later perhaps more. Memory held now: parameters ");
}

}  // namespace
}  // namespace assay::test
