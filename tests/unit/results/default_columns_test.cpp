#include "results/default_columns.hpp"

#include "experiment/experiment.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace assay::host::results {
namespace {

TEST(Columns, DefaultsFollowTheExperimentAndTheRecords) {
  experiment::Experiment experiment;
  experiment::Case c;
  c.axes = {{"size", std::string("small")}, {"measure.warmup", std::int64_t{5}}};
  experiment.cases = {c};
  Json record = ok_record();
  record["metrics"].erase("ratio");
  EXPECT_EQ(default_columns(experiment, {oom_record(), record}),
            (std::vector<std::string>{"size", "measure.warmup", "step.mean_ms", "step.std_ms", "tokens_per_s",
                                      "memory.step_peak.max_mib", "parameters", "loss.mean", "forward.mean_ms",
                                      "backward.mean_ms", "verify", "device", "status"}));
  EXPECT_EQ(default_columns(experiment, {oom_record()}),
            (std::vector<std::string>{"size", "measure.warmup", "device", "status"}));
  record["phases"].erase("forward");
  record["phases"].erase("backward");
  // The workload asks the host for no memory.
  record["memory"]["peak_total_mib"] = 0.0;
  record["memory"]["step_peak_mib"] = {{"mean", 0.0}, {"min", 0.0}, {"max", 0.0}};
  EXPECT_EQ(default_columns(experiment::Experiment{}, {record}),
            (std::vector<std::string>{"size", "measure.warmup", "step.mean_ms", "step.std_ms", "step.cv_percent",
                                      "tokens_per_s", "memory.process_peak_mib", "parameters", "loss.mean", "verify",
                                      "device", "status"}));
}

TEST(Columns, WhatAFigureIsWorthIsShown) {
  const auto names_of = [](const std::vector<record::CaseRecord>& records) {
    const auto columns = default_columns(experiment::Experiment{}, records);
    return std::vector<std::string>(std::find(columns.begin(), columns.end(), "backward.mean_ms") + 1, columns.end());
  };
  Json record = ok_record();
  EXPECT_EQ(names_of({record}), (std::vector<std::string>{"verify", "device", "status"}));
  record["validity"] = {{"verdict", "contended"}, {"text", "others"}};
  EXPECT_EQ(names_of({record}), (std::vector<std::string>{"validity", "verify", "device", "status"}));
  record.erase("verify");
  record.erase("device");
  EXPECT_EQ(names_of({record}), (std::vector<std::string>{"validity", "verify", "status"}))
      << "a record without a verification must not pass for a verified one";
}

TEST(Columns, MemoryOfTheCaseStandsForThatOfTheStepsWhereTheseTellNone) {
  const auto has = [](const Json& record, const char* name) {
    const auto columns = default_columns(experiment::Experiment{}, {record});
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  Json record = ok_record();
  EXPECT_FALSE(has(record, "memory.peak_mib")) << "it has what algorithms were tried on, and changes with what is kept";
  record["memory"].erase("step_peak_mib");  // as figures of another program
  EXPECT_TRUE(has(record, "memory.peak_mib"));
}

TEST(Columns, TheNumberOfRanksShowsWhereNoAxisSaysIt) {
  Json record = ok_record();
  const auto has = [&record](const char* name) {
    const auto columns = default_columns(experiment::Experiment{}, {oom_record(), record});
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  const auto has_ranks = [&has] { return has("ranks"); };
  record["ranks"] = 1;
  EXPECT_FALSE(has_ranks());
  record["ranks"] = 4;
  EXPECT_TRUE(has_ranks());
  for (const int ranks : {4, 1}) {
    record["ranks"] = ranks;
    record["axes"]["run.ranks"] = "all";
    EXPECT_TRUE(has_ranks());
    EXPECT_FALSE(has("run.ranks")) << "the number stands for it";
    record["axes"]["run.ranks"] = ranks;
    EXPECT_FALSE(has_ranks());
    EXPECT_TRUE(has("run.ranks"));
  }
}

TEST(Columns, CopiesAreShown) {
  Json record = ok_record();
  record["ranks"] = 2;
  record["copies"] = 2;
  const auto columns = default_columns(experiment::Experiment{}, {record});
  EXPECT_NE(std::find(columns.begin(), columns.end(), "copies"), columns.end());
}

class ColumnsOfATable : public ::testing::Test {
 protected:
  ColumnsOfATable() {
    experiment_.cases.resize(1);
    experiment_.cases[0].axes = {{"size", std::string("small")}, {"measure.warmup", std::int64_t{0}}};
    experiment_.output.columns = {"step.mean_ms", "size", "status"};
    cold_["axes"] = {{"size", "small"}, {"measure.warmup", 0}};
  }
  std::vector<std::string> columns() const { return table_columns(experiment_, {warm_, cold_}); }
  experiment::Experiment experiment_;
  Json warm_ = ok_record(), cold_ = ok_record();
};

TEST_F(ColumnsOfATable, AxesThatTheExperimentLeavesOutStandInFront) {
  EXPECT_EQ(columns(), (std::vector<std::string>{"measure.warmup", "step.mean_ms", "size", "status"}));
  experiment_.output.columns = {"step.mean_ms"};
  warm_["axes"]["size"] = "large";
  EXPECT_EQ(columns(), (std::vector<std::string>{"size", "measure.warmup", "step.mean_ms"}));
}

TEST_F(ColumnsOfATable, AnAxisWithOneValueIsLeftOut) {
  cold_["axes"]["measure.warmup"] = 5;
  EXPECT_EQ(columns(), experiment_.output.columns);
}

TEST_F(ColumnsOfATable, TheNumberOfRanksShowsAnAxisOfRanks) {
  cold_["axes"] = {{"size", "small"}, {"measure.warmup", 5}, {"run.ranks", 1}};
  warm_["axes"]["run.ranks"] = 2;
  EXPECT_EQ(columns().front(), "run.ranks");
  experiment_.output.columns.push_back("ranks");
  EXPECT_EQ(columns(), experiment_.output.columns);
}

TEST_F(ColumnsOfATable, ABaselineGivesASpeedupUnlessAColumnSaysMore) {
  experiment_.output.relative_to = {{"measure.warmup", std::int64_t{5}}};
  EXPECT_EQ(columns(), (std::vector<std::string>{"measure.warmup", "step.mean_ms", "speedup", "size", "status"}));
  experiment_.output.columns = {"size", "status"};
  EXPECT_EQ(columns(), (std::vector<std::string>{"measure.warmup", "size", "speedup", "status"}));
  experiment_.output.columns = {"step.mean_ms.ratio"};
  EXPECT_EQ(columns(), (std::vector<std::string>{"measure.warmup", "step.mean_ms.ratio"}));
  experiment_.output.columns.clear();
  const auto chosen = columns();
  const auto place = std::find(chosen.begin(), chosen.end(), "step.mean_ms");
  ASSERT_NE(place, chosen.end());
  EXPECT_EQ(*(place + 1), "speedup");
}

TEST_F(ColumnsOfATable, RepeatsAreTold) {
  cold_["axes"] = warm_["axes"] = {{"size", "small"}};
  warm_["repeat"] = 1, cold_["repeat"] = 2;
  EXPECT_EQ(columns().front(), "repeat");
  experiment_.output.columns.clear();
  const auto chosen = columns();
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), "repeat"), 1);
}

}  // namespace
}  // namespace assay::host::results
