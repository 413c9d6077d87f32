// A run's summaries: one for each number of ranks, with their own epochs; and what a workload has warned of.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Summaries : public Sandbox {
 protected:
  Summaries() : Sandbox(PLUGINS) {}

  static ExperimentText napping(const std::string& params = "", const std::string& sweep = "") {
    return {.plugin = "napping_work", .params = params, .measure = "warmup = 0\nsteps = 2", .sweep = sweep};
  }
  // By their number of ranks, as the file itself says it.
  std::vector<fs::path> summary_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(run_folder()))
      if (entry.path().filename().string().starts_with("bench_")) files.push_back(entry.path());
    std::sort(files.begin(), files.end(),
              [](const fs::path& a, const fs::path& b) { return ranks_in(a) < ranks_in(b); });
    return files;
  }
  static json summary_in(const fs::path& file) { return json::parse(text_of(file)); }
  static int ranks_in(const fs::path& file) { return summary_in(file)["metadata"]["ranks"]; }
};

TEST_F(Summaries, EachNumberOfRanksHasItsOwn) {
  ASSERT_EQ(records_of(napping("", "heads = [1, 2]\n\"run.ranks\" = [1, 2]")).size(), 4u);
  const std::vector<fs::path> files = summary_files();
  ASSERT_EQ(files.size(), 2u);
  std::set<int> cases;
  for (int i = 0; i < 2; ++i) {
    const fs::path& file = files[static_cast<std::size_t>(i)];
    const json summary = summary_in(file);
    EXPECT_EQ(summary["metadata"]["ranks"], i + 1);
    EXPECT_EQ(contains(file.filename().string(), "_0gpu_2ranks_"), i == 1) << file;
    EXPECT_EQ(summary["cases"].size(), 2u);
    EXPECT_EQ(summary["epochs"].size(), 4u);
    EXPECT_EQ(summary["summary"]["planned"], 2);
    EXPECT_EQ(summary["summary"]["finished"], 2);
    EXPECT_EQ(summary["summary"]["epochs"].size(), 2u);
    for (const json& record : summary["cases"]) {
      EXPECT_EQ(record["ranks"], i + 1);
      cases.insert(record["index"].get<int>());
    }
  }
  EXPECT_EQ(cases.size(), 4u) << "each case in one file";
}

TEST_F(Summaries, TheRunStaysOneAndAFileIsOneOfItsOwn) {
  ASSERT_EQ(records_of(napping("", "\"run.ranks\" = [1, 2]")).size(), 2u);
  const auto files = summary_files();
  ASSERT_EQ(files.size(), 2u);
  const auto compared = [this](const std::string& a, const std::string& b, bool any) {
    std::vector<std::string> arguments{"compare", a, b, "--format", "json"};
    if (any) arguments.push_back("--any");
    const RunResult result = run(arguments);
    EXPECT_EQ(result.exit.code, 0) << result.output;
    return json::parse(result.output.substr(0, result.output.rfind("\n}\n") + 3));
  };
  ASSERT_EQ(run_experiment(napping("", "\"run.ranks\" = [1, 2]")).exit.code, 0);
  const auto folders = run_folders();
  ASSERT_EQ(folders.size(), 2u);
  const json whole = compared(folders[0].string(), folders[1].string(), false);
  EXPECT_EQ(whole["sides"].size(), 2u);
  EXPECT_EQ(whole["metrics"][0]["cases"].size(), 2u) << "the summaries in the folder are no further cases";
  const json parts = compared(files[0].string(), files[1].string(), true);
  EXPECT_EQ(parts["metrics"][0]["cases"].size(), 1u);
}

TEST_F(Summaries, AResumedRunHasThemAllAnew) {
  ASSERT_EQ(records_of(napping("", "\"run.ranks\" = [1]")).size(), 1u);
  ASSERT_EQ(summary_files().size(), 1u);
  EXPECT_EQ(run_experiment(napping("", "\"run.ranks\" = [1, 2]"), {"--resume"}).exit.code, 0);
  EXPECT_EQ(run_folders().size(), 1u);
  ASSERT_EQ(summary_files().size(), 2u);
  EXPECT_EQ(cases().size(), 2u) << "the finished case is not run again";
}

TEST_F(Summaries, AnEpochHasItsOwnUtilisationAndPeakMemory) {
  const auto records = records_of(napping("nap_ms = 600\ngrows = true"));
  ASSERT_EQ(records.size(), 1u);
  const json percents = records[0]["telemetry"]["step_utilisation_percent"];
  ASSERT_EQ(percents.size(), 2u) << records[0]["telemetry"];
  const auto files = summary_files();
  ASSERT_EQ(files.size(), 1u);
  const json epochs = summary_in(files[0])["epochs"];
  ASSERT_EQ(epochs.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(epochs[i]["utilisation_percent"], percents[i]);
    EXPECT_GE(percents[i], 0.0);
    EXPECT_LE(percents[i], 100.0);
    EXPECT_EQ(epochs[i]["peak_memory_mib"], static_cast<double>(i + 1)) << "MiB that are taken in each step, and kept";
  }
}

TEST_F(Summaries, OfSeveralRanksAnEpochHasTheMeanUtilisation) {
  auto text = napping("nap_ms = 600");
  text.run = "ranks = 2";
  const auto records = records_of(text);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["telemetry"]["step_utilisation_percent"].size(), 2u) << records[0]["telemetry"];
}

TEST_F(Summaries, ShortStepsHaveNoUtilisationOfTheirOwn) {
  const auto records = records_of(napping());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_FALSE(records[0]["telemetry"].contains("step_utilisation_percent"));
  EXPECT_TRUE(records[0]["memory"].contains("step_peak_mib"));
  EXPECT_FALSE(records[0]["memory"]["step_peak_mib"].contains("samples"));
  auto unread = napping("nap_ms = 300");
  unread.measure += "\nsync = false";
  const auto of_the_device = records_of(unread);
  ASSERT_EQ(of_the_device.size(), 1u);
  EXPECT_FALSE(of_the_device[0]["telemetry"].contains("step_utilisation_percent"));
}

TEST_F(Summaries, WarningsOfAWorkloadAreNotes) {
  const auto warnings = [](const json& record) {
    std::vector<std::string> found;
    for (const std::string note : record["notes"])
      if (note.starts_with("warning ")) found.push_back(note);
    return found;
  };
  auto records = records_of(napping("warnings = 2"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(warnings(records[0]), (std::vector<std::string>{"warning 1", "warning 2"})) << "each once";
  EXPECT_PRED2(contains, output(), "warning 2");
  records = records_of(napping("warnings = 30"));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(warnings(records[0]).size(), 8u) << "the log has the others";
  EXPECT_PRED2(contains, text_of(run_folder() / "logs/case-0001.log"), "[plugin warning] warning 30");
}

}  // namespace
}  // namespace assay::test
