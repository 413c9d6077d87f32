#include "experiment/growth.hpp"

#include "demo_workload.hpp"

namespace assay::host::experiment::test {
namespace {

std::string resolved(const std::string& text, const std::vector<std::string>& set = {}) {
  return good(text, set).resolved_toml;
}

std::vector<std::string> between(const std::string& before, const std::string& after) {
  return differences_but_growth(resolved(before), resolved(after));
}

using Lines = std::vector<std::string>;

const std::string head = "schema = 1\nname = \"x\"\n[workload]\nplugin = \"demo\"\n";

TEST(Growth, ValuesOfAnAxisMayComeAndGo) {
  const std::string before = head + "[sweep]\nbatch_size = [1, 2]\n";
  EXPECT_EQ(between(before, before), Lines{});
  EXPECT_EQ(between(before, head + "[sweep]\nbatch_size = [2, 3]\n"), Lines{});
  EXPECT_EQ(between(before, head + "[[sweep.zip]]\nbatch_size = [2, 3]\n"), Lines{});
}

TEST(Growth, ParametersAndSettingsMayNotDiffer) {
  const Lines expected{"measure.steps: not set in the run, 7 now", "run.seed: 1234 in the run, 2 now",
                       "workload.params.batch_size: 4 in the run, 5 now"};
  EXPECT_EQ(between(head, head + "[workload.params]\nbatch_size = 5\n[measure]\nsteps = 7\n[run]\nseed = 2\n"),
            expected);
}

TEST(Growth, WhatChangesNoFigureMay) {
  EXPECT_EQ(
      between(head, head + "[measure]\ntimeout = \"5s\"\n[run]\nallow = [\"oom\"]\n[output]\nformats = [\"csv\"]\n"),
      Lines{});
}

TEST(Growth, AnAxisThatComesOrGoesIsNamedOnce) {
  const std::string swept = head + "[sweep]\nbatch_size = [1, 2]\n";
  EXPECT_EQ(between(head, swept), Lines{"workload.params.batch_size: 4 in the run, swept now"});
  EXPECT_EQ(between(swept, head), Lines{"workload.params.batch_size: swept in the run, 4 now"});
  EXPECT_EQ(between(head, head + "[sweep]\n\"run.seed\" = [1, 2]\n"), Lines{"run.seed: 1234 in the run, swept now"});
  EXPECT_EQ(between(head, head + "[sweep]\n\"measure.timeout\" = [\"1s\", \"2s\"]\n"), Lines{});
}

// A run of an assay that knew fewer settings does not cover the others.
TEST(Growth, WhatIsNotSaidIsTheDefault) {
  std::string older = resolved(head);
  const std::size_t at = older.find("seed = ");
  ASSERT_NE(at, std::string::npos);
  older.erase(at, older.find('\n', at) + 1 - at);
  EXPECT_EQ(differences_but_growth(older, resolved(head)), Lines{});
  EXPECT_EQ(differences_but_growth(older, resolved(head, {"run.seed=2"})), Lines{"run.seed: 1234 in the run, 2 now"});
}

TEST(Growth, ATextThatIsNoneIsSaid) {
  EXPECT_THROW(differences_but_growth("seed = ", resolved(head)), std::invalid_argument);
}

}  // namespace
}  // namespace assay::host::experiment::test
