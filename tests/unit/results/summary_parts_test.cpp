#include "results/summary_parts.hpp"

#include "experiment/experiment.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

#include <string>

namespace assay::host::results {
namespace {

Json on_cpu(int index, int ranks) {
  Json record = ok_record();
  record["index"] = index;
  record["ranks"] = ranks;
  return record;
}
Json on_gpus(int index, int ranks) {
  Json record = on_cpu(index, ranks);
  record["device"] = {{"kind", "cuda"}, {"name", "NVIDIA H200"}};
  return record;
}
Json without_device(int index, int ranks) {
  Json record = on_cpu(index, ranks);
  record.erase("device");
  return record;
}

experiment::Experiment of_ranks(const std::vector<std::int64_t>& ranks) {
  experiment::Experiment experiment;
  for (const std::int64_t count : ranks) {
    experiment.cases.emplace_back();
    experiment.cases.back().index = static_cast<std::int64_t>(experiment.cases.size()) - 1;
    experiment.cases.back().run.ranks = count;
  }
  return experiment;
}

// "4gpu: 0 1 of 3", a line for each part.
std::string reported(const std::vector<SummaryPart>& parts) {
  std::string text;
  for (const SummaryPart& part : parts) {
    text += std::to_string(part.gpus()) + "gpu " + std::to_string(part.ranks) + "ranks:";
    for (const record::CaseRecord& record : part.records) text += " " + std::to_string(record.identity.index);
    text += " of " + std::to_string(part.planned) + "\n";
  }
  return text;
}

TEST(SummaryParts, OneForEachNumberOfRanks) {
  EXPECT_EQ(
      reported(summary_parts(of_ranks({1, 2, 4, 1}), {on_gpus(0, 1), on_gpus(1, 2), on_gpus(2, 4), on_gpus(3, 1)})),
      "1gpu 1ranks: 0 3 of 2\n2gpu 2ranks: 1 of 1\n4gpu 4ranks: 2 of 1\n");
  EXPECT_EQ(reported(summary_parts(of_ranks({2, 1}), {on_cpu(0, 2), on_cpu(1, 1)})),
            "0gpu 1ranks: 1 of 1\n0gpu 2ranks: 0 of 1\n");
}

TEST(SummaryParts, DevicesAreApart) {
  EXPECT_EQ(reported(summary_parts(of_ranks({1, 1}), {on_gpus(0, 1), on_cpu(1, 1)})),
            "0gpu 1ranks: 1 of 1\n1gpu 1ranks: 0 of 1\n");
}

TEST(SummaryParts, ACaseThatReachedNoDeviceIsWithTheOthersOfItsRanks) {
  EXPECT_EQ(reported(summary_parts(of_ranks({2, 2}), {on_gpus(0, 2), without_device(1, 2)})),
            "2gpu 2ranks: 0 1 of 2\n");
  EXPECT_EQ(reported(summary_parts(of_ranks({2}), {without_device(0, 2)})), "0gpu 2ranks: 0 of 1\n");
}

TEST(SummaryParts, WhatHasNotRunIsPlannedOnce) {
  EXPECT_EQ(reported(summary_parts(of_ranks({1, 2, 2, 4}), {on_gpus(0, 1), on_gpus(1, 2)})),
            "1gpu 1ranks: 0 of 1\n2gpu 2ranks: 1 of 2\n");
  // Which number "all" is, only a run shows.
  EXPECT_EQ(reported(summary_parts(of_ranks({1, 2, experiment::ranks_all}), {on_gpus(0, 1), on_gpus(1, 2)})),
            "1gpu 1ranks: 0 of 2\n2gpu 2ranks: 1 of 1\n");
  EXPECT_EQ(reported(summary_parts(of_ranks({1, 1, 1}), {on_cpu(0, 1), on_gpus(1, 1)})),
            "0gpu 1ranks: 0 of 2\n1gpu 1ranks: 1 of 1\n");
  EXPECT_EQ(reported(summary_parts(of_ranks({1, 2}), {})), "0gpu 1ranks: of 2\n");
}

TEST(SummaryParts, TheWholeRunHasTheMostGpusOfACase) {
  EXPECT_EQ(reported({whole_run(of_ranks({1, 4, 2}), {on_gpus(0, 1), on_gpus(1, 4)})}), "4gpu 4ranks: 0 1 of 3\n");
  EXPECT_EQ(reported({whole_run(of_ranks({8, 2}), {on_cpu(0, 8), on_gpus(1, 2)})}), "2gpu 2ranks: 0 1 of 2\n");
}

TEST(SummaryParts, EveryRepeatIsPlanned) {
  experiment::Experiment experiment = of_ranks({1, 1});
  experiment.cases[1].index = 0;
  experiment.cases[0].repeat = 1, experiment.cases[1].repeat = 2;
  EXPECT_EQ(reported(summary_parts(experiment, {on_gpus(0, 1)})), "1gpu 1ranks: 0 of 2\n");
}

}  // namespace
}  // namespace assay::host::results
