// [output] relative_to where it is right; what is wrong with it has a malformed file each.
#include "demo_workload.hpp"

#include "experiment/hash.hpp"

namespace assay::host::experiment::test {
namespace {

using Pairs = std::vector<std::pair<std::string, Value>>;

const std::string kSweep = "[sweep]\nsize = [\"small\", \"large\"]\n\"measure.warmup\" = [0, 5]\n";
const std::string kColumns = "columns = [\"size\", \"speedup\", \"step.mean_ms.ratio\", \"memory.peak_mib.ratio\"]\n";

TEST(RelativeTo, NamesAxesWithTheirValues) {
  const auto experiment = good(
      experiment_text(kSweep + "[output]\nrelative_to = { size = \"small\", \"measure.warmup\" = 5 }\n" + kColumns));
  EXPECT_EQ(experiment.output.relative_to,
            (Pairs{{"size", std::string("small")}, {"measure.warmup", std::int64_t{5}}}));
  EXPECT_EQ(experiment.output.columns.size(), 4u);
}

TEST(RelativeTo, ADottedKeyNeedsNoQuotes) {
  const Pairs expected{{"measure.warmup", std::int64_t{0}}};
  EXPECT_EQ(good(experiment_text(kSweep + "[output]\nrelative_to = { measure.warmup = 0 }\n")).output.relative_to,
            expected);
  EXPECT_EQ(good(experiment_text(kSweep + "[output.relative_to]\nmeasure.warmup = 0\n")).output.relative_to, expected);
  EXPECT_EQ(good(experiment_text(kSweep), {"output.relative_to.measure.warmup=0"}).output.relative_to, expected);
  EXPECT_EQ(good(experiment_text(kSweep), {"output.relative_to={ \"measure.warmup\" = 0 }"}).output.relative_to,
            expected);
}

TEST(RelativeTo, AValueHasTheFormOfItsAxis) {
  const auto experiment =
      good(experiment_text("[sweep]\nlr = [1, 2]\n\"measure.timeout\" = [600, \"20m\"]\n"
                           "[output]\nrelative_to = { lr = 1, \"measure.timeout\" = \"600s\" }\n"));
  EXPECT_EQ(experiment.output.relative_to, (Pairs{{"lr", 1.0}, {"measure.timeout", std::string("10m")}}));
}

TEST(RelativeTo, WhatMovesWithAnAxisGoesAlong) {
  const auto experiment =
      good(experiment_text("[[sweep.zip]]\nsize = [\"small\", \"large\"]\nheads = [3, 4]\n"
                           "[output]\nrelative_to = { size = \"large\" }\n"));
  EXPECT_EQ(experiment.output.relative_to, (Pairs{{"size", std::string("large")}, {"heads", std::int64_t{4}}}));
}

TEST(RelativeTo, IsNoPartOfACasesIdentity) {
  const auto plain = good(experiment_text(kSweep));
  const auto related = good(experiment_text(kSweep + "[output]\nrelative_to = { size = \"small\" }\n"));
  EXPECT_EQ(case_hash(plain.cases[0], "demo", {}), case_hash(related.cases[0], "demo", {}));
}

TEST(RelativeTo, AnAxisChangedOnTheCommandLineMayLoseItsBaseline) {
  const std::string text = experiment_text(kSweep + "[output]\nrelative_to = { size = \"small\" }\n" + kColumns);
  for (const char* set : {"size=large", "sweep.size=[\"large\", \"medium\"]"}) {
    const auto experiment = good(text, {set});
    EXPECT_TRUE(experiment.output.relative_to.empty()) << set;
    EXPECT_EQ(experiment.output.columns, std::vector<std::string>{"size"}) << set;
    good(experiment.resolved_toml);
  }
  EXPECT_EQ(good(text, {"size=small"}).output.relative_to.size(), 1u);
}

TEST(RelativeTo, AFilterDoesNotTakeItAway) {
  const auto experiment =
      good(experiment_text(kSweep + "[output]\nrelative_to = { size = \"small\" }\n"), {}, {"size=large"});
  EXPECT_EQ(experiment.output.relative_to.size(), 1u);
  EXPECT_EQ(experiment.cases.size(), 2u);
}

TEST(RelativeTo, ABrokenAxisIsOneMistake) {
  const auto mistakes =
      lines(parse(experiment_text("[sweep]\nsize = [\"smal\"]\n[output]\nrelative_to = { size = \"small\" }\n")));
  EXPECT_EQ(mistakes.size(), 1u) << mistakes[0];
}

}  // namespace
}  // namespace assay::host::experiment::test
