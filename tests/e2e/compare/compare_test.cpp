#include "e2e/support/sandbox.hpp"

#include <gtest/gtest.h>
#include <algorithm>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

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
  EXPECT_FALSE(contains(text.output, "How it was tested")) << text.output;
  EXPECT_TRUE(contains(compare({a, b, "--explain"}).output, "How it was tested"));
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

// The second day is played by changed files.
TEST_F(Compare, WhatHasChangedBetweenTwoDaysIsListedWhole) {
  const std::string a = measured("a"), b = measured("b");
  const fs::path run = folder() / b;
  for (const auto& entry : fs::directory_iterator(run / "environments")) {
    nlohmann::ordered_json environment = nlohmann::ordered_json::parse(text_of(entry.path()));
    environment["os"]["kernel"] = "another kernel";
    environment["gpu"]["driver"] = "590.2";
    environment["variables"]["NVIDIA_TF32_OVERRIDE"] = "0";
    environment["invocations"][0]["load_average"] = {90, 90, 90};
    environment["invocations"][0]["command"] = "assay run b.toml";
    std::ofstream(entry.path()) << environment.dump();
  }
  nlohmann::ordered_json record = nlohmann::ordered_json::parse(text_of(run / "cases.jsonl"));
  record["libraries"]["libpreloaded.so"] = "00ff";
  record["device"]["uuid"] = "GPU-2";
  std::ofstream(run / "cases.jsonl") << record.dump() << "\n";
  std::map<std::string, std::string> found;
  const nlohmann::json comparison = compared({a, b});
  for (const auto& difference : comparison["differences"])
    found[difference["item"]] = difference["values"][1].is_string() ? difference["values"][1] : "";
  // A driver and a GPU that the first run does not report are no differences: it has no GPU.
  const std::map<std::string, std::string> expected{{"command", "assay run b.toml"},
                                                    {"library libpreloaded.so", "00ff"},
                                                    {"os.kernel", "another kernel"},
                                                    {"variables.NVIDIA_TF32_OVERRIDE", "0"}};
  EXPECT_EQ(found, expected);
  EXPECT_TRUE(contains(compare({a, b}).output, "not set")) << output();
}

TEST_F(Compare, OtherWorkIsRefusedUnlessAskedFor) {
  const std::string a = measured("a"), b = measured("b", "elements = 8192");
  const nlohmann::json refused = compared({a, b});
  EXPECT_EQ(refused["metrics"][0]["cases"][0]["sides"][1]["reason"],
            "other inputs: elements 4096 / 8192; compare all the same with --across elements");
  const nlohmann::json across = compared({a, b, "--across", "elements"});
  EXPECT_EQ(across["metrics"][0]["cases"][0]["sides"][1]["state"], "compared");
  EXPECT_EQ(across["sides"][1]["inputs"], nlohmann::json::array({"elements=8192"}));
  const RunResult text = compare({a, b, "--across", "elements"});
  EXPECT_TRUE(contains(text.output, "elements=4096") && contains(text.output, "elements=8192")) << text.output;
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
  EXPECT_EQ(compared({a, b, "--cost", "3.00,5.50"}), json);
  const auto& sides = json["metrics"][0]["cases"][0]["sides"];
  ASSERT_EQ(sides.size(), 2u) << json;
  for (const auto& side : sides) EXPECT_GT(side["items_per_dollar"], 0);
  const RunResult wrong = compare({a, b, "--cost", "3.00"});
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_TRUE(contains(wrong.output, "--cost has 1 for 2 sides")) << wrong.output;
}

TEST_F(Compare, WrongCommandLines) {
  const std::string a = measured("a"), b = measured("b");
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{}, "no run is given"},
      {{a}, "is one run; expected two or more"},
      {{a, "nowhere"}, "nowhere is not there; expected a run folder"},
      {{a, b, "--metric", "stp"}, "did you mean 'step'?"},
      {{a, b, "--fail-if", "sloer"}, "--fail-if is 'sloer'"},
      {{a, b, "--format", "xml"}, "--format is 'xml'"},
      {{a, b, "--statistic", "p10"}, "--statistic is 'p10'"},
      {{a, b, "--threshold", "-1"}, "--threshold is -1"},
      {{a, b, "--cost", "3", "0"}, "expected dollars above 0"},
      {{a, b, "--states", "-1"}, "--states is -1"},
      {{a, a}, "A and B are one run"}};
  for (const auto& [arguments, message] : wrong) {
    const RunResult result = compare(arguments);
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_TRUE(contains(result.output, message)) << result.output;
  }
}

TEST_F(Compare, EveryFormHasTheVerdict) {
  const std::string a = measured("a"), b = measured("b");
  for (const char* format : {"terminal", "markdown", "csv", "json"}) {
    const RunResult result = compare({a, b, "--metric", "turns", "--format", format});
    EXPECT_EQ(result.exit.code, 0);
    EXPECT_TRUE(contains(result.output, "same")) << result.output;
  }
}

TEST_F(Compare, CasesOfOneRunAreSidesByWhatVaries) {
  const std::string a = measured("a", "", "elements = [64, 400000]\nbatch_size = [1, 2]");
  const nlohmann::json json = compared({a, "--by", "elements", "--metric", "turns"});
  ASSERT_EQ(json["sides"].size(), 2u) << json;
  EXPECT_EQ(json["sides"][1]["label"], "elements=400000");
  ASSERT_EQ(json["metrics"][0]["cases"].size(), 2u);
  for (const auto& c : json["metrics"][0]["cases"]) EXPECT_EQ(c["sides"][1]["verdict"], "same") << c;
  const nlohmann::json turned = compared({a, "--by", "elements", "--baseline", "400000"});
  EXPECT_EQ(turned["sides"][0]["label"], "elements=400000");
  // Thousands of times the work is never the same or faster. Three steps on a busy machine may show no more than that.
  EXPECT_EQ(compare({a, "--by", "elements", "--fail-if", "slower,cannot-tell"}).exit.code, 1);
  EXPECT_EQ(compare({a, "--by", "batch_size,elements", "--format", "csv"}).exit.code, 0);
}

TEST_F(Compare, WrongSplitsSayWhatThereIs) {
  const std::string a = measured("a", "", "batch_size = [1, 2]"), b = measured("b", "", "batch_size = [1, 2]");
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{a, "--by", "batchsize"}, "what varies: batch_size; did you mean 'batch_size'?"},
      {{a, "--by", "elements"}, "all cases have elements = 4096; what varies: batch_size"},
      {{a, "--by", "batch_size", "--baseline", "3"}, "--baseline is '3'; expected a value of batch_size: 1, 2"},
      {{a, b, "--by", "batch_size"}, "--by splits one side, and there are 2"},
      {{a, b, "--baseline", "1"}, "--baseline is a value of --by and needs it"}};
  for (const auto& [arguments, message] : wrong) {
    const RunResult result = compare(arguments);
    EXPECT_EQ(result.exit.code, 2) << result.output;
    EXPECT_TRUE(contains(result.output, message)) << result.output;
  }
  EXPECT_EQ(compare({a + "," + b, "--by", "batch_size"}).exit.code, 0);
  EXPECT_TRUE(contains(compare({a}).output, "--by with an input that varies within it: batch_size; see"));
}

TEST_F(Compare, AFolderOfManyExperimentsHasAnOverviewFirst) {
  for (int i = 0; i < 2; ++i) measured("x", "", "batch_size = [1, 2]");
  measured("y", "elements = 64");
  const nlohmann::json json = compared({"out"});
  ASSERT_EQ(json["runs"].size(), 3u) << json;
  ASSERT_EQ(json["comparisons"].size(), 1u);
  EXPECT_EQ(json["comparisons"][0]["metrics"][0]["cases"].size(), 2u);
  EXPECT_EQ(json["skipped"].size(), 1u);
  const RunResult text = compare({"out"});
  EXPECT_EQ(text.exit.code, 0);
  EXPECT_TRUE(contains(text.output, "Runs below out")) << text.output;
  EXPECT_TRUE(contains(text.output, "Comparison 1: x, 2 runs")) << text.output;
  EXPECT_TRUE(contains(text.output, "1 run shares no case with another")) << text.output;
  EXPECT_EQ(compare({"out", "--format", "csv"}).exit.code, 0);
  EXPECT_EQ(compare({"out", "--metric", "stp"}).exit.code, 2);
  EXPECT_EQ(compare({"out", "--cost", "3", "4"}).exit.code, 2);
}

TEST_F(Compare, RunsThatShareNothingFailTheGate) {
  measured("x", "elements = 32");
  measured("y", "elements = 64");
  const RunResult result = compare({"out", "--fail-if", "slower"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  EXPECT_TRUE(contains(result.output, "nothing could be compared")) << result.output;
}

TEST_F(Compare, WhereNoCaseIsOkThereIsNoMetric) {
  const std::string a = measured("a"), b = measured("b");
  for (const std::string& run : {a, b}) {
    nlohmann::json record = nlohmann::json::parse(text_of(folder() / run / "cases.jsonl"));
    for (const char* part : {"phases", "rates", "memory", "metrics", "step_metrics", "telemetry"}) record.erase(part);
    record["status"] = "oom";
    std::ofstream(folder() / run / "cases.jsonl") << record.dump() << "\n";
  }
  for (const char* format : {"terminal", "markdown", "csv", "json"}) {
    const RunResult result = compare({a, b, "--metric", "all", "--side-by-side", "--format", format});
    EXPECT_EQ(result.exit.code, 0) << format << result.output;
  }
  EXPECT_TRUE(contains(compare({a, b, "--metric", "all", "--side-by-side"}).output, "Nothing could be compared"));
  EXPECT_TRUE(contains(compare({a, b, "--metric", "all"}).output, "Nothing could be compared"));
}

TEST_F(Compare, MetricsSideBySide) {
  const std::string a = measured("a"), b = measured("b");
  const RunResult result = compare({a, b, "--metric", "all", "--side-by-side"});
  EXPECT_EQ(result.exit.code, 0) << result.output;
  for (const char* metric : {"step in ms", "sweep in ms", "turns", "memory in MiB"})
    EXPECT_TRUE(contains(result.output, metric)) << metric << " is not in\n" << result.output;
  EXPECT_EQ(compare({a, b, "--side-by-side", "--cost", "3", "4"}).exit.code, 2);
}

// The columns of a run's own tables.
class RelativeColumns : public Compare {
 protected:
  static ExperimentText text(const std::string& output) {
    ExperimentText text;
    text.plugin = "measured_work";
    text.params = "work = 0.01";
    text.sweep = "elements = [64, 400000]\nbatch_size = [1, 2]";
    text.run = "[output]\n" + output;
    return text;
  }
  // The lines of table.csv, each as its cells; texts with commas are not among them.
  std::vector<std::vector<std::string>> rows() const {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(text_of(run_folder() / "table.csv"));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream cells(line + ",");
      rows.emplace_back();
      for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
    }
    // What distinguishes the row's run follows the table's own columns.
    const auto own = std::find(rows.front().begin(), rows.front().end(), "run") - rows.front().begin();
    for (std::vector<std::string>& row : rows) row.resize(static_cast<std::size_t>(own));
    return rows;
  }
};

const std::string kRelative =
    "relative_to = { elements = 64 }\ncolumns = [\"elements\", \"turns.ratio\", \"step.mean_ms\", \"speedup\", "
    "\"status\"]\n";

TEST_F(RelativeColumns, OfARunStandInItsTables) {
  const RunResult result = run_experiment(text(kRelative));
  ASSERT_EQ(result.exit.code, 0) << result.output;
  const auto table = rows();
  ASSERT_EQ(table.size(), 5u);
  // The axis that the columns leave out stands in front.
  EXPECT_EQ(table[0],
            (std::vector<std::string>{"batch_size", "elements", "turns.ratio", "step.mean_ms", "speedup", "status"}));
  for (std::size_t i : {1u, 2u}) EXPECT_EQ(table[i][4], "1.0");
  for (std::size_t i : {3u, 4u}) {
    EXPECT_EQ(table[i][2], "1.0");
    EXPECT_NEAR(std::stod(table[i][4]), std::stod(table[i - 2][3]) / std::stod(table[i][3]), 1e-9);
  }
  EXPECT_TRUE(contains(result.output, "speedup")) << result.output;
  EXPECT_TRUE(contains(text_of(run_folder() / "table.md"), " speedup |"));
  EXPECT_TRUE(contains(text_of(run_folder() / "experiment.toml"), "relative_to = { elements = 64 }"));
}

TEST_F(RelativeColumns, AreEmptyWithoutTheBaselineAndFilledByResuming) {
  ASSERT_EQ(run_experiment(text(kRelative), {"--filter", "elements=400000"}).exit.code, 0);
  ASSERT_EQ(rows().size(), 3u);
  for (std::size_t i : {1u, 2u}) EXPECT_EQ(rows()[i][4], "");
  ASSERT_EQ(run_experiment(text(kRelative), {"--resume"}).exit.code, 0);
  ASSERT_EQ(rows().size(), 5u);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_NE(rows()[i][4], "");
}

TEST_F(RelativeColumns, MayBeAskedForOnTheCommandLine) {
  const RunResult result =
      run_experiment(text("columns = [\"step.mean_ms\"]\n"),
                     {"--set", "output.relative_to={ elements = 64 }", "--set", "sweep.right=[true]"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  EXPECT_EQ(rows()[0], (std::vector<std::string>{"elements", "batch_size", "step.mean_ms", "speedup"}));
}

TEST_F(RelativeColumns, AnAxisOfTheCommandLineIsAColumn) {
  ASSERT_EQ(run_experiment(text("columns = [\"elements\", \"status\"]\n"), {"--set", "sweep.measure.warmup=[0, 1]"})
                .exit.code,
            0);
  EXPECT_EQ(rows()[0], (std::vector<std::string>{"batch_size", "measure.warmup", "elements", "status"}));
  ASSERT_EQ(rows().size(), 9u);
}

TEST_F(RelativeColumns, AMistakeIsToldBeforeAnythingStarts) {
  const RunResult result = run_experiment(text("relative_to = { elements = 65 }\n"));
  EXPECT_EQ(result.exit.code, 2);
  EXPECT_TRUE(contains(result.output,
                       "[output] relative_to elements is 65, which its axis does not have; expected one of 64, 400000"))
      << result.output;
  EXPECT_TRUE(contains(result.output, "nothing was started")) << result.output;
}

}  // namespace
}  // namespace assay::test
