#include "compare/sides.hpp"

#include "compare/comparison.hpp"
#include "noisy_records.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <fstream>

namespace assay::host::compare {
namespace {

namespace fs = std::filesystem;

class SidesOfAComparison : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void put_run(const std::string& name, const std::string& size = "small") {
    put(name + "/cases.jsonl", record_of({{"size", size}}, {1, 2, 3}).dump() + "\n");
    put(name + "/environment.json", R"({"cpu": {"model": "X"}})");
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  static std::string complaint(const std::vector<std::string>& arguments) {
    try {
      read_sides(arguments, FolderOfRuns::sides);
    } catch (const NoRunError& e) {
      return e.what();
    }
    return "";
  }
  test::TemporaryFolder folder_;
};

TEST_F(SidesOfAComparison, RunFoldersFilesAndSummaries) {
  put_run("x/20261120T120000Z-0001");
  put("bench_X_0gpu_20261120T120000Z.json", Json{{"schema", 1},
                                                 {"metadata", {{"environment", {{"cpu", {{"model", "Y"}}}}}}},
                                                 {"cases", Json::array({record_of({}, {1, 2})})}}
                                                .dump());
  put_run("x/20261120T120001Z-0002");
  const Sides sides = read_sides({at("x/20261120T120000Z-0001"), at("x/20261120T120001Z-0002/cases.jsonl"),
                                  at("bench_X_0gpu_20261120T120000Z.json")},
                                 FolderOfRuns::sides);
  ASSERT_EQ(sides.sides.size(), 3u);
  EXPECT_EQ(sides.sides[2].label, "C");
  for (const Side& side : sides.sides) {
    ASSERT_EQ(side.runs.size(), 1u);
    EXPECT_EQ(side.runs[0].records.size(), 1u);
    EXPECT_TRUE(side.runs[0].environment.has_value());
  }
  EXPECT_EQ(sides.sides[2].runs[0].environment->fact_or("cpu.model", ""), "Y");
}

TEST_F(SidesOfAComparison, EveryTimeOfACaseThatRunsSeveralTimesIsKept) {
  std::string lines;
  // The second time ran again, as when a run goes on.
  for (const int repeat : {1, 2, 3, 2}) {
    Json record = record_of({{"size", "small"}}, {1, 2, 3});
    record["repeat"] = repeat;
    record["index"] = repeat;
    lines += record.dump() + "\n";
  }
  put("x/20261120T120000Z-0001/cases.jsonl", lines);
  const Sides sides = read_sides({at("x/20261120T120000Z-0001")}, FolderOfRuns::sides);
  ASSERT_EQ(sides.sides.size(), 1u);
  EXPECT_EQ(sides.sides[0].runs[0].records.size(), 3u);
  // Each is a run of its side.
  std::vector<Side> both{sides.sides[0], sides.sides[0]};
  both[1].label = "B";
  const Comparison comparison = compare_sides(both, {});
  ASSERT_EQ(comparison.metrics[0].cases.size(), 1u);
  EXPECT_EQ(comparison.metrics[0].cases[0].entries[1].runs, 3u);
}

TEST_F(SidesOfAComparison, AFolderOfRunsIsSortedAndLeavesLatestOut) {
  for (const char* run : {"x/20261120T120002Z-0001", "x/20261120T120001Z-0002"}) put_run(run);
  fs::create_directory_symlink("20261120T120002Z-0001", folder_ / "x/latest");
  const Sides apart = read_sides({at("x")}, FolderOfRuns::sides);
  ASSERT_EQ(apart.sides.size(), 2u);
  EXPECT_EQ(apart.sides[0].name, at("x/20261120T120001Z-0002"));
  const Sides together = read_sides({at("x")}, FolderOfRuns::one_side);
  ASSERT_EQ(together.sides.size(), 1u);
  EXPECT_EQ(together.sides[0].runs.size(), 2u);
  EXPECT_EQ(read_sides({at("x/latest")}, FolderOfRuns::sides).sides.size(), 1u);
}

TEST_F(SidesOfAComparison, ARunIsNotComparedWithItself) {
  const std::string one = "x/20261120T120001Z-0001", other = "x/20261120T120002Z-0002";
  put_run(one), put_run(other);
  fs::create_directory_symlink("20261120T120001Z-0001", folder_ / "x/latest");
  fs::create_directory_symlink("20261120T120001Z-0001", folder_ / "x/earlier");
  const std::pair<std::string, std::string> same[] = {
      {one, one}, {one, one + "/"}, {one, one + "/cases.jsonl"}, {"x/latest", "x/earlier"}, {one, "x"}};
  for (const auto& [a, b] : same) EXPECT_THROW(read_sides({at(a), at(b)}, FolderOfRuns::sides), NoRunError) << a << b;
  try {
    read_sides({at(one), at(one)}, FolderOfRuns::sides);
  } catch (const NoRunError& e) {
    EXPECT_EQ(std::string(e.what()),
              "A and B are one run: " + at(one) + "; a run is not compared with itself. Name another run");
  }
  EXPECT_THROW(read_sides({at(one) + "," + at(other), at(other)}, FolderOfRuns::sides), NoRunError);
  EXPECT_EQ(read_sides({at(one), at(other)}, FolderOfRuns::sides).sides.size(), 2u);
}

// As where two runs were given one record by hand: both have measured more.
TEST_F(SidesOfAComparison, OneRowInCommonMakesNoCopy) {
  const auto row = [](const char* size, const char* started) {
    Json record = record_of({{"size", size}}, {1, 2, 3});
    record["started"] = started;
    return record.dump() + "\n";
  };
  const std::string common = row("small", "2026-11-20T12:00:00Z");
  put("a/cases.jsonl", common + row("large", "2026-11-20T13:00:00Z"));
  put("b/cases.jsonl", common + row("large", "2026-11-21T13:00:00Z"));
  put("copy/cases.jsonl", row("large", "2026-11-20T13:00:00Z") + common);
  EXPECT_EQ(read_sides({at("a"), at("b")}, FolderOfRuns::sides).sides.size(), 2u);
  EXPECT_THROW(read_sides({at("a"), at("copy")}, FolderOfRuns::sides), NoRunError);
}

TEST_F(SidesOfAComparison, ACopyIsNoOtherRun) {
  const auto put_started = [&](const char* name, const char* started, const char* sha256) {
    Json record = record_of({{"size", "small"}}, {1, 2, 3});
    record["started"] = started;
    put(std::string(name) + "/cases.jsonl", record.dump() + "\n");
    put(std::string(name) + "/environment.json", Json{{"imported", {{"sha256", sha256}}}}.dump());
  };
  put_started("a", "2026-11-20T12:00:00Z", "1f"), put_started("copy", "2026-11-20T12:00:00Z", "1f");
  put_started("again", "2026-11-21T12:00:00Z", "1f"), put_started("other", "2026-11-22T12:00:00Z", "2e");
  // Imported with --again: its environment is another one.
  Json record = record_of({{"size", "small"}}, {1, 2, 3});
  record["started"] = "2026-11-20T12:00:00Z", record["environment"] = "a0";
  put("asked/cases.jsonl", record.dump() + "\n");
  put("asked/environment.json", Json{{"imported", {{"sha256", "1f"}, {"again", 1}}}}.dump());
  const std::vector<std::string> of_asked = read_sides({at("a"), at("asked")}, FolderOfRuns::sides).warnings;
  EXPECT_TRUE(std::any_of(of_asked.begin(), of_asked.end(), [](const std::string& warning) {
    return warning.find("were imported from one file") != std::string::npos;
  }));
  const std::string same = at("copy") + " has the same measurements as " + at("a");
  EXPECT_NE(complaint({at("a"), at("copy")}).find(same), std::string::npos) << complaint({at("a"), at("copy")});
  EXPECT_NE(complaint({at("a") + "," + at("copy"), at("other")}).find("Both are named for one side"),
            std::string::npos);
  EXPECT_TRUE(read_sides({at("a"), at("other")}, FolderOfRuns::sides).warnings.empty());
  const std::vector<std::string> warnings = read_sides({at("a"), at("again")}, FolderOfRuns::sides).warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("were imported from one file"), std::string::npos);
}

TEST_F(SidesOfAComparison, AFolderOfSummaries) {
  for (const char* name : {"r/bench_B_1gpu_x.json", "r/bench_A_1gpu_x.json"})
    put(name, Json{{"cases", Json::array({record_of({}, {1})})}}.dump());
  put("r/notes.json", "{}");
  const Sides sides = read_sides({at("r")}, FolderOfRuns::sides);
  ASSERT_EQ(sides.sides.size(), 2u);
  EXPECT_EQ(sides.sides[0].name, at("r/bench_A_1gpu_x.json"));
}

TEST_F(SidesOfAComparison, CommasJoinRunsUnlessAPathHasThem) {
  put_run("a1"), put_run("a2"), put_run("b,1");
  const Sides sides = read_sides({at("a1") + "," + at("a2"), at("b,1")}, FolderOfRuns::sides);
  ASSERT_EQ(sides.sides.size(), 2u);
  EXPECT_EQ(sides.sides[0].runs.size(), 2u);
  EXPECT_EQ(sides.sides[1].runs.size(), 1u);
}

TEST_F(SidesOfAComparison, TheLastLineOfACaseCounts) {
  Json failed = record_of({{"size", "small"}}, {1, 2});
  failed["status"] = "oom";
  put("x/cases.jsonl", failed.dump() + "\n" + record_of({{"size", "small"}}, {5, 6}).dump() + "\n");
  const Sides sides = read_sides({at("x")}, FolderOfRuns::sides);
  ASSERT_EQ(sides.sides[0].runs[0].records.size(), 1u);
  EXPECT_EQ(sides.sides[0].runs[0].records[0].result.status, record::Status::ok);
}

TEST_F(SidesOfAComparison, WhatIsNoRunIsNamedWithTheRemedy) {
  put("empty/notes.txt", "");
  put("other.json", "{\"a\": 1}");
  put("torn.json", "{\"a\": ");
  EXPECT_NE(complaint({at("nowhere")}).find("is not there; expected a run folder"), std::string::npos);
  EXPECT_NE(complaint({at("empty")}).find("holds no run; expected a run folder"), std::string::npos);
  for (const char* name : {"other.json", "torn.json"})
    EXPECT_NE(complaint({at(name)}).find("has no records"), std::string::npos) << name;
}

TEST_F(SidesOfAComparison, ARecordsEnvironmentIsTheOneThatItNames) {
  Json first = record_of({{"size", "small"}}, {1, 2}), second = record_of({{"size", "large"}}, {1, 2}),
       before = record_of({{"size", "tiny"}}, {1, 2});
  first["environment"] = "0123", second["environment"] = "4567";
  put_run("x");
  put("x/cases.jsonl", first.dump() + "\n" + second.dump() + "\n" + before.dump() + "\n");
  put("x/environments/0123.json", R"({"cpu": {"model": "first"}})");
  put("x/environments/4567.json", R"({"cpu": {"model": "second"}})");
  const auto model_of = [&](std::size_t record) {
    const Sides sides = read_sides({at("x")}, FolderOfRuns::sides);
    EXPECT_TRUE(sides.warnings.empty());
    const ComparedRun& run = sides.sides[0].runs[0];
    return run.environment_of(run.records[record])->fact_or("cpu.model", "");
  };
  EXPECT_EQ(model_of(0), "first");
  EXPECT_EQ(model_of(1), "second");
  EXPECT_EQ(model_of(2), "X") << "it names none";
  put("x/environments/unnamed.json", R"({"cpu": {"model": "of before"}})");
  EXPECT_EQ(model_of(2), "of before");
}

TEST_F(SidesOfAComparison, AnEnvironmentThatIsGoneIsTold) {
  Json record = record_of({{"size", "small"}}, {1, 2});
  record["environment"] = "0123";
  put_run("x");
  put("x/cases.jsonl", record.dump() + "\n");
  const Sides sides = read_sides({at("x")}, FolderOfRuns::sides);
  ASSERT_EQ(sides.warnings.size(), 1u);
  EXPECT_NE(sides.warnings[0].find("environments/0123.json is missing"), std::string::npos) << sides.warnings[0];
  const ComparedRun& run = sides.sides[0].runs[0];
  EXPECT_EQ(run.environment_of(run.records[0])->fact_or("cpu.model", ""), "X");
}

TEST_F(SidesOfAComparison, RepeatsOfACaseAreSeveralRunsOfIt) {
  std::string lines;
  for (const int repeat : {1, 2, 2}) {
    nlohmann::ordered_json record = record_of({}, {1, 2});
    if (repeat > 1) record["repeat"] = repeat;
    lines += record.dump() + "\n";
  }
  put("a/cases.jsonl", lines);
  const Sides sides = read_sides({at("a")}, FolderOfRuns::sides);
  ASSERT_EQ(sides.sides.size(), 1u);
  const auto& records = sides.sides[0].runs[0].records;
  ASSERT_EQ(records.size(), 2u) << "the second repeat ran again: its last line counts";
  EXPECT_EQ(records[1].identity.repeat, 2);
}

TEST_F(SidesOfAComparison, TornLinesAndEmptyRunsAreTold) {
  put("torn/cases.jsonl", record_of({}, {1, 2}).dump() + "\n{\"schema\":");
  put("none/cases.jsonl", "");
  const Sides sides = read_sides({at("torn"), at("none")}, FolderOfRuns::sides);
  ASSERT_EQ(sides.warnings.size(), 2u);
  EXPECT_NE(sides.warnings[0].find("torn"), std::string::npos);
  EXPECT_NE(sides.warnings[1].find("no case has finished there"), std::string::npos);
}

TEST(SideLabel, CountsOn) {
  EXPECT_EQ(side_label(0), "A");
  EXPECT_EQ(side_label(25), "Z");
  EXPECT_EQ(side_label(26), "AA");
  EXPECT_EQ(side_label(52), "BA");
}

}  // namespace
}  // namespace assay::host::compare
