// Workloads whose ranks do not work together, on several ranks.
#include "ranks_sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Copies : public RanksSandbox {
 protected:
  static ExperimentText decoder(const std::string& run) {
    return {.plugin = "decoder",
            .params =
                "d_model = 32\nd_ff = 64\nlayers = 1\nheads = 2\nvocab_size = 64\nbatch_size = 2\n"
                "context_length = 16",
            .run = "threads = 1\n" + run};
  }
  static double rate(const json& record, const char* name) { return record["rates"].value(name, 0.0); }
  static double mean_ms(const json& record) { return record["phases"]["step"]["mean_ms"]; }
};

// A table of decoder on 1 and 2 ranks showed twice the tokens, as if training had scaled.
TEST_F(Copies, ADecoderOnTwoRanksIsRefusedWithTheRemedy) {
  ExperimentText text = decoder("");
  text.sweep = "\"run.ranks\" = [1, 2]";
  const auto records = records_of(text, 1);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["status"], "ok") << records[0].dump(2);
  EXPECT_EQ(records[1]["status"], "unsupported") << records[1].dump(2);
  EXPECT_PRED2(contains, records[1].value("reason", ""), "ranks of workload 'decoder' do not work together");
  EXPECT_PRED2(contains, records[1].value("reason", ""), "run.copies = true");
}

TEST_F(Copies, CopiesThatAreAskedForCountOnce) {
  const auto records = records_of(decoder("ranks = 2\ncopies = true"));
  ASSERT_EQ(records.size(), 1u);
  const json& r = records[0];
  ASSERT_EQ(r["status"], "ok") << r.dump(2);
  EXPECT_EQ(r["copies"], 2);
  EXPECT_EQ(r["ranks"], 2);
  EXPECT_PRED2(contains, r["notes"].dump(), "2 independent copies");
  EXPECT_NEAR(rate(r, "items_per_s") * mean_ms(r), 2 * 16 * 1e3, 1e-3) << "the tokens of one copy";
  EXPECT_NEAR(rate(r, "gflop_per_s") * mean_ms(r) * 1e6, r["work"]["flops"].get<double>(), 1.0);
  EXPECT_PRED2(contains, text_of(run_folder() / "table.csv"), "copies");
}

TEST_F(Copies, APluginThatCannotSayRunsWithANote) {
  const auto records = records_of({.plugin = "unsaid_ranks", .run = "ranks = 2"});
  ASSERT_EQ(records.size(), 1u);
  ASSERT_EQ(records[0]["status"], "ok") << records[0].dump(2);
  EXPECT_FALSE(records[0].contains("copies"));
  EXPECT_PRED2(contains, records[0]["notes"].dump(), "built for ABI 1.2, which cannot say whether ranks work together");
  EXPECT_NEAR(rate(records[0], "items_per_s") * mean_ms(records[0]), 20 * 1e3, 1e-3) << "as before";
  const auto copies = records_of({.plugin = "unsaid_ranks", .run = "ranks = 2\ncopies = true"});
  EXPECT_EQ(copies.back()["copies"], 2);
}

TEST_F(Copies, CodeWithoutOptimisationIsANoteOfTheCaseAndNotOfEachRank) {
  const auto records = records_of({.plugin = "unsaid_ranks", .run = "ranks = 2"});
  ASSERT_EQ(records.at(0)["status"], "ok") << records[0].dump(2);
  std::size_t notes = 0;
  for (const json& note : records[0]["notes"])
    notes += note.get<std::string>().starts_with("not optimised: plugin org.assay.test.unsaid_ranks (GNU 9.4.0 unopt");
  EXPECT_EQ(notes, 1u) << records[0]["notes"];
  EXPECT_NE(records[0]["device"].value("build", ""), "");
}

TEST_F(Copies, RanksThatWorkTogetherAreNoCopies) {
  const auto records = records_of({.plugin = "faulty_rank", .run = "ranks = 2\ncopies = true"}, 1);
  EXPECT_EQ(records.at(0)["status"], "unsupported");
  EXPECT_PRED2(contains, records.at(0).value("reason", ""), "leave out run.copies");
}

}  // namespace
}  // namespace assay::test
