#include "e2e/support/sandbox.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace assay::test {
namespace {

namespace fs = std::filesystem;

// Runs of a workload whose amount of work is a parameter. No verdict between times is asserted: under `ctest -j` a
// machine is as noisy as it gets.
class Compare : public Sandbox {
 protected:
  Compare() : Sandbox(PLUGINS) {}

  std::string measured(const std::string& name, const std::string& params = "", const std::string& sweep = "",
                       const std::string& run = "") {
    ExperimentText text;
    text.plugin = "measured_work", text.name = name, text.sweep = sweep, text.run = run;
    text.params = "work = 0.01\n" + params;
    EXPECT_LE(run_experiment(text).exit.code, 1) << output();
    return fs::relative(run_folders().back(), folder()).string();
  }
  RunResult compare(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "compare");
    return run(arguments);
  }
  nlohmann::json compared(std::vector<std::string> arguments, int code = 0) {
    arguments.insert(arguments.end(), {"--format", "json"});
    const RunResult result = compare(std::move(arguments));
    EXPECT_EQ(result.exit.code, code) << result.output;
    // What goes to standard error stands behind it in the same file.
    const std::size_t end = result.output.rfind("\n}\n");
    return nlohmann::json::parse(result.output.substr(result.output.find('{'), end + 2), nullptr, false);
  }
};

TEST_F(Compare, TwoRunsOfOneExperiment) {
  const std::string sweep = "batch_size = [1, 2]";
  const std::string a = measured("a", "", sweep), b = measured("b", "", sweep);
  const nlohmann::json json = compared({a, b, "--metric", "step,samples_per_s", "--metric", "turns"});
  ASSERT_EQ(json["metrics"].size(), 3u) << json;
  for (const auto& metric : json["metrics"]) {
    ASSERT_EQ(metric["cases"].size(), 2u);
    for (const auto& c : metric["cases"]) EXPECT_EQ(c["sides"][1]["state"], "compared") << c;
  }
  EXPECT_EQ(json["metrics"][2]["cases"][0]["sides"][1]["verdict"], "same");
  EXPECT_TRUE(json["unmatched"].empty());
  const RunResult text = compare({a, b});
  EXPECT_TRUE(contains(text.output, "Sides (the baseline is A)")) << text.output;
  EXPECT_TRUE(contains(text.output, "batch_size")) << text.output;
}

TEST_F(Compare, RunsOfOneExperimentSideBySideOrAsOneSide) {
  for (int i = 0; i < 3; ++i) measured("x");
  const std::string b = measured("y");
  EXPECT_EQ(compared({"out/x"})["sides"].size(), 3u);
  const nlohmann::json grouped = compared({"--group", "out/x", b});
  ASSERT_EQ(grouped["sides"].size(), 2u);
  EXPECT_EQ(grouped["sides"][0]["runs"].size(), 3u);
}

TEST_F(Compare, ASummaryStandsForItsRun) {
  const std::string a = measured("a"), b = measured("b");
  std::string summary;
  for (const auto& entry : fs::directory_iterator(folder() / a))
    if (entry.path().filename().string().starts_with("bench_")) summary = fs::relative(entry.path(), folder()).string();
  ASSERT_FALSE(summary.empty());
  EXPECT_EQ(compared({summary, b})["metrics"][0]["cases"][0]["sides"][1]["state"], "compared");
}

TEST_F(Compare, OtherWorkIsRefusedUnlessAskedFor) {
  const std::string a = measured("a"), b = measured("b", "elements = 8192");
  const nlohmann::json refused = compared({a, b});
  EXPECT_EQ(refused["metrics"][0]["cases"][0]["sides"][1]["reason"],
            "other inputs: elements 4096 / 8192; compare all the same with --across elements");
  EXPECT_EQ(compared({a, b, "--across", "elements"})["metrics"][0]["cases"][0]["sides"][1]["state"], "compared");
}

TEST_F(Compare, AFailedVerificationIsNoFigureAndFailsTheGate) {
  const std::string a = measured("a"), b = measured("b", "right = false");
  const RunResult result = compare({a, b, "--across", "right", "--fail-if", "slower"});
  EXPECT_EQ(result.exit.code, 1);
  EXPECT_TRUE(contains(result.output, "B: verification failed: wrong as asked for")) << result.output;
  EXPECT_TRUE(contains(result.output, "assay: failed: step of B, measured_work")) << result.output;
  EXPECT_EQ(compare({a, b, "--across", "right"}).exit.code, 0);
}

TEST_F(Compare, MuchMoreWorkIsSlowerForTheGate) {
  const std::string a = measured("a"), b = measured("b", "elements = 400000");
  // A hundred times the work is never the same or faster, whatever else runs here.
  const RunResult result = compare({a, b, "--across", "elements", "--fail-if", "slower,cannot-tell"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
}

TEST_F(Compare, CostPerSide) {
  const std::string a = measured("a"), b = measured("b");
  const nlohmann::json json = compared({a, b, "--cost", "3.00", "5.50"});
  const auto& sides = json["metrics"][0]["cases"][0]["sides"];
  ASSERT_EQ(sides.size(), 2u) << json;
  for (const auto& side : sides) EXPECT_GT(side["items_per_dollar"], 0);
  const RunResult wrong = compare({a, b, "--cost", "3.00"});
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_TRUE(contains(wrong.output, "--cost has 1 for 2 sides")) << wrong.output;
}

TEST_F(Compare, WrongCommandLines) {
  const std::string a = measured("a");
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{}, "no run is given"},
      {{a}, "is one run; expected two or more"},
      {{a, "nowhere"}, "nowhere is not there; expected a run folder"},
      {{a, a, "--metric", "stp"}, "did you mean 'step'?"},
      {{a, a, "--fail-if", "sloer"}, "--fail-if is 'sloer'"},
      {{a, a, "--format", "xml"}, "--format is 'xml'"},
      {{a, a, "--statistic", "p10"}, "--statistic is 'p10'"},
      {{a, a, "--threshold", "-1"}, "--threshold is -1"},
      {{a, a, "--cost", "3", "0"}, "expected dollars above 0"}};
  for (const auto& [arguments, message] : wrong) {
    const RunResult result = compare(arguments);
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_TRUE(contains(result.output, message)) << result.output;
  }
}

TEST_F(Compare, ARunWithItselfIsTheSame) {
  const std::string a = measured("a");
  for (const char* format : {"terminal", "markdown", "csv", "json"}) {
    const RunResult result = compare({a, a, "--metric", "turns", "--format", format});
    EXPECT_EQ(result.exit.code, 0);
    EXPECT_TRUE(contains(result.output, "same")) << result.output;
  }
}

}  // namespace
}  // namespace assay::test
