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
            (std::vector<std::string>{"size", "measure.warmup", "parameters", "forward.mean_ms", "backward.mean_ms",
                                      "step.mean_ms", "step.std_ms", "tokens_per_s", "memory.peak_mib", "status"}));
  EXPECT_EQ(default_columns(experiment, {oom_record()}),
            (std::vector<std::string>{"size", "measure.warmup", "status"}));
  record["phases"].erase("forward");
  record["phases"].erase("backward");
  record["memory"]["peak_total_mib"] = 0.0;  // the workload asks the host for no memory
  EXPECT_EQ(default_columns(experiment::Experiment{}, {record}),
            (std::vector<std::string>{"size", "measure.warmup", "parameters", "step.mean_ms", "step.std_ms",
                                      "step.cv_percent", "tokens_per_s", "memory.process_peak_mib", "status"}));
}

TEST(Columns, TheNumberOfRanksShowsWhereNoAxisSaysIt) {
  Json record = ok_record();
  const auto has_ranks = [&record] {
    const auto columns = default_columns(experiment::Experiment{}, {oom_record(), record});
    return std::find(columns.begin(), columns.end(), "ranks") != columns.end();
  };
  record["ranks"] = 1;
  EXPECT_FALSE(has_ranks());
  record["ranks"] = 4;
  EXPECT_TRUE(has_ranks());
  record["axes"]["run.ranks"] = "all";
  EXPECT_TRUE(has_ranks());
  record["axes"]["run.ranks"] = 4;
  EXPECT_FALSE(has_ranks());
}

}  // namespace
}  // namespace assay::host::results
