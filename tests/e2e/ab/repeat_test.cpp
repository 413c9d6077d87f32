// [run] repeat: every case several times, as separate records.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/support/sandbox.hpp"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

using Numbers = std::vector<std::pair<int, int>>;  // index and repeat

class Repeat : public Sandbox {
 protected:
  Repeat() : Sandbox(PLUGINS) {}

  static ExperimentText twice() {
    return {.plugin = "measured_work",
            .params = "work = 0.01",
            .measure = "warmup = 0\nsteps = 2",
            .run = "repeat = 2",
            .sweep = "batch_size = [1, 2]"};
  }
  Numbers numbers() const {
    Numbers numbers;
    for (const auto& record : cases()) numbers.emplace_back(record["index"], record.value("repeat", 0));
    return numbers;
  }
  std::string table() const { return text_of(run_folder() / "table.csv"); }
  std::ptrdiff_t rows() const {
    const std::string lines = table();
    return std::count(lines.begin(), lines.end(), '\n') - 1;
  }
};

TEST_F(Repeat, RunsTheCasesInTurnsAndShowsEach) {
  const RunResult result = run_experiment(twice());
  ASSERT_EQ(result.exit.code, 0) << result.output;
  EXPECT_EQ(numbers(), (Numbers{{0, 1}, {1, 1}, {0, 2}, {1, 2}}));
  EXPECT_EQ(cases()[0]["hash"], cases()[2]["hash"]);
  EXPECT_TRUE(table().starts_with("batch_size,repeat,")) << table();
  EXPECT_EQ(rows(), 4) << table();
  EXPECT_TRUE(fs::exists(run_folder() / "logs/case-0001.log"));
  EXPECT_TRUE(fs::exists(run_folder() / "logs/case-0001.repeat2.log"));
  for (const auto& entry : fs::directory_iterator(run_folder()))
    if (entry.path().filename().string().starts_with("bench_")) {
      const auto summary = nlohmann::json::parse(text_of(entry.path()))["summary"];
      EXPECT_EQ(summary["planned"], 4);
      EXPECT_EQ(summary["finished"], 4);
      EXPECT_TRUE(contains(summary["lines"][1], "batch_size=1 repeat 2: ok")) << summary;
    }
}

TEST_F(Repeat, TogetherTheyFollowEachOther) {
  ExperimentText text = twice();
  text.run += "\norder = \"together\"";
  ASSERT_EQ(run_experiment(text).exit.code, 0);
  EXPECT_EQ(numbers(), (Numbers{{0, 1}, {0, 2}, {1, 1}, {1, 2}}));
}

TEST_F(Repeat, MoreAreAddedByResumingAndNoneRunsAgain) {
  ExperimentText text = twice();
  text.run = "";
  ASSERT_EQ(run_experiment(text).exit.code, 0);
  EXPECT_EQ(numbers(), (Numbers{{0, 0}, {1, 0}}));
  ASSERT_EQ(run_experiment(text, {"--resume", "--set", "run.repeat=2"}).exit.code, 0) << output();
  EXPECT_EQ(numbers(), (Numbers{{0, 0}, {1, 0}, {0, 2}, {1, 2}}));
  EXPECT_EQ(rows(), 4) << table();
  ASSERT_EQ(run_experiment(text, {"--resume", "--set", "run.repeat=3", "--filter", "batch_size=2"}).exit.code, 0);
  EXPECT_EQ(numbers().back(), (std::pair{1, 3}));
  EXPECT_EQ(run_folders().size(), 1u);
}

TEST_F(Repeat, OfOneRunAreSeveralRunsOfASide) {
  ExperimentText text = twice();
  text.run = "repeat = 3";
  ASSERT_EQ(run_experiment(text).exit.code, 0);
  ASSERT_EQ(run_experiment(text).exit.code, 0);
  const auto folders = run_folders();
  ASSERT_EQ(folders.size(), 2u);
  const RunResult result = run({"compare", folders[0].string(), folders[1].string(), "--format", "json"});
  ASSERT_EQ(result.exit.code, 0) << result.output;
  const auto json = nlohmann::json::parse(result.output);
  ASSERT_EQ(json["metrics"][0]["cases"].size(), 2u) << result.output;
  EXPECT_EQ(json["metrics"][0]["cases"][0]["sides"][1]["runs"], 3) << result.output;
}

TEST_F(Repeat, AreShownByADryRunAndStayInOnePart) {
  write_experiment(twice());
  const RunResult dry = run(run_arguments({"--dry-run"}));
  EXPECT_TRUE(contains(dry.output, "x: 4 cases\n")) << dry.output;
  EXPECT_TRUE(contains(dry.output, "1  batch_size=1 repeat 1\n")) << dry.output;
  ASSERT_EQ(run(run_arguments({"--shard", "2/2"})).exit.code, 0);
  EXPECT_EQ(numbers(), (Numbers{{1, 1}, {1, 2}}));
}

TEST_F(Repeat, IsRefusedByABatch) {
  write_experiment(twice());
  std::ofstream(folder() / "site.toml") << "schema = 1\n[slurm]\npartition = \"cpu\"\n";
  const RunResult result = run({"submit", "x.toml", "--site", "./site.toml", "--plugin-path", PLUGINS, "--dry-run"});
  EXPECT_EQ(result.exit.code, 2) << result.output;
  EXPECT_TRUE(contains(result.output, "[run] repeat is 2, but a batch has one record for each case")) << result.output;
}

}  // namespace
}  // namespace assay::test
