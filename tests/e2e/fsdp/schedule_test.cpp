// When fsdp gathers blocks, and in which format it reduces their gradients.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class FsdpSchedule : public Sandbox {
 protected:
  static constexpr std::int64_t d = 48, ff = 80, layers = 4, vocabulary = 151;
  static constexpr std::int64_t padded(std::int64_t n, std::int64_t ranks) {
    return (n + 64 * ranks - 1) / (64 * ranks) * 64 * ranks;
  }
  static constexpr std::int64_t layer_elements(std::int64_t ranks) { return padded(3 * d * ff + 4 * d * d, ranks); }
  // Without a warm-up, whose number of steps depends on time, losses compare.
  std::vector<json> run_cases(const std::string& params, const std::string& sweep, const char* depth = "layers = 4\n") {
    return records_of({.plugin = "fsdp",
                       .params = "d_model = 48\nd_ff = 80\nheads = 2\nvocab_size = 151\nbatch_size = 2\n"
                                 "context_length = 24\n" +
                                 params + depth,
                       .measure = "warmup = 0\nsteps = 2",
                       .run = "threads = 1",
                       .sweep = sweep});
  }
  static std::int64_t whole(const json& record, const char* name) {
    return static_cast<std::int64_t>(metric(record, name));
  }
  static std::int64_t communication_bytes_held(const json& record) {
    return static_cast<std::int64_t>(record["memory"]["peak_mib"].value("communication", 0.0) * 1024 * 1024 + 0.5);
  }
};

// As many gatherings of as many bytes, a block earlier, for the memory of one block more.
TEST_F(FsdpSchedule, TwoBlocksAheadIsVerifiedForTheMemoryOfOneBlockMore) {
  const auto records = run_cases("", "\"run.ranks\" = [2, 3]\nreshard = [true, false]\nprefetch_blocks = [1, 2]\n");
  ASSERT_EQ(records.size(), 8u);
  for (std::size_t i = 0; i < records.size(); i += 2) {
    const json &one = records[i], &two = records[i + 1];
    SCOPED_TRACE(two["axes"].dump());
    for (const json* r : {&one, &two}) {
      ASSERT_EQ((*r)["status"], "ok") << (*r)["reason"];
      EXPECT_EQ(communication_bytes_held(*r), whole(*r, "gathered_bytes"));
      EXPECT_EQ((*r)["metrics"]["gathers_taken"]["word"], "any_memory");
    }
    for (const char* same : {"messages", "communication_bytes", "loss"})
      EXPECT_EQ(metric(one, same), metric(two, same));
    const std::int64_t more = whole(two, "gathered_bytes") - whole(one, "gathered_bytes");
    EXPECT_EQ(more, two["axes"]["reshard"] ? 4 * layer_elements(two["ranks"]) : 0);
  }
}

// A tied embedding is gathered for both ends, the second time while the first may still be in use; of one layer both
// are ahead at once.
TEST_F(FsdpSchedule, TwoBlocksAheadServesTiedEmbeddingsAndMicroBatches) {
  const auto records = run_cases("tied_embeddings = true\naccumulation_steps = 2\nprefetch_blocks = 2\n",
                                 "\"run.ranks\" = [2]\nreshard = [true, false]\nlayers = [1, 2, 3]\n"
                                 "sync_every_micro_batch = [true, false]\n",
                                 "");
  ASSERT_EQ(records.size(), 12u);
  for (const json& r : records) EXPECT_EQ(r["status"], "ok") << r["axes"] << r["reason"];
}

TEST_F(FsdpSchedule, GradientsAreReducedInTheFormatAskedFor) {
  const auto records = run_cases("",
                                 "\"run.ranks\" = [2, 3]\nprecision = [\"fp32\", \"bf16\"]\n"
                                 "reduce_dtype = [\"gradients\", \"fp32\", \"bf16\"]\n");
  ASSERT_EQ(records.size(), 12u);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const json& r = records[i];
    SCOPED_TRACE(r["axes"].dump());
    ASSERT_EQ(r["status"], "ok") << r["reason"];
    const json& as_made = records[i - i % 3];
    const std::int64_t ranks = r["ranks"], made = r["axes"]["precision"] == "bf16" ? 2 : 4;
    const std::int64_t reduced = r["axes"]["reduce_dtype"] == "gradients" ? made
                                 : r["axes"]["reduce_dtype"] == "bf16"    ? 2
                                                                          : 4;
    const std::int64_t norms = padded(64 * (2 * layers + 1), ranks);
    const std::int64_t kept = 2 * padded(vocabulary * d, ranks) + layers * layer_elements(ranks) + norms;
    EXPECT_EQ(whole(r, "communication_bytes") - whole(as_made, "communication_bytes"), (reduced - made) * kept);
    EXPECT_EQ(metric(r, "messages"), metric(as_made, "messages"));
    EXPECT_EQ(whole(r, "gradient_bytes"), whole(as_made, "gradient_bytes"));
    EXPECT_EQ(communication_bytes_held(r), whole(r, "gathered_bytes"));
    // What is under way has the format of the reduction.
    const std::int64_t more = whole(r, "gathered_bytes") - whole(as_made, "gathered_bytes");
    EXPECT_EQ(more > 0, reduced > made);
    EXPECT_EQ(more < 0, reduced < made);
  }
}

TEST_F(FsdpSchedule, ConvertedGradientsOfMicroBatchesAddUp) {
  const auto records =
      run_cases("precision = \"bf16\"\nreduce_dtype = \"fp32\"\naccumulation_steps = 3\n",
                "\"run.ranks\" = [2]\nsync_every_micro_batch = [true, false]\nprefetch_blocks = [1, 2]\n");
  ASSERT_EQ(records.size(), 4u);
  for (const json& r : records) EXPECT_EQ(r["status"], "ok") << r["axes"] << r["reason"];
}

// On the CPU there is one kind: it is taken at once, and the record says so.
TEST_F(FsdpSchedule, MeasuredGathersTakeTheOnlyKindOfTheCpu) {
  for (const char* plugin : {"fsdp", "sharded_optimizer"}) {
    SCOPED_TRACE(plugin);
    const auto records = records_of({.plugin = plugin,
                                     .params = "size = \"tiny\"\nbatch_size = 1\ncontext_length = 8\n",
                                     .measure = "warmup = 1\nsteps = 1",
                                     .run = "threads = 1\nranks = 2",
                                     .sweep = "gathers = [\"any_memory\", \"measured\"]"});
    ASSERT_EQ(records.size(), 2u);
    for (const json& r : records) {
      ASSERT_EQ(r["status"], "ok") << r["reason"];
      EXPECT_EQ(r["metrics"]["gathers_taken"]["word"], "any_memory");
      EXPECT_EQ(r["memory"]["peak_mib"], records[0]["memory"]["peak_mib"]);
    }
  }
}

TEST_F(FsdpSchedule, GatheringsAreMeasuredWhereThereAreSome) {
  const auto records = records_of({.plugin = "sharded_optimizer",
                                   .params = "size = \"tiny\"\nbatch_size = 1\ncontext_length = 8\n"
                                             "gathers = \"measured\"\n",
                                   .measure = "warmup = 1\nsteps = 1",
                                   .run = "threads = 1\nranks = 2\nallow = [\"unsupported\"]",
                                   .sweep = "variant = [\"baseline\", \"broadcast\"]"});
  ASSERT_EQ(records.size(), 2u);
  for (const json& r : records) {
    EXPECT_EQ(r["status"], "unsupported");
    EXPECT_PRED2(contains, r["reason"], "needs variant = \"zero1\" without muon");
  }
}

}  // namespace
}  // namespace assay::test
