#include "results/case_order.hpp"

#include "experiment/experiment.hpp"
#include "unit/record/sample_record.hpp"

#include <gtest/gtest.h>

namespace assay::host::results {
namespace {

experiment::Experiment sweep(const std::vector<std::string>& sizes) {
  experiment::Experiment experiment;
  for (const std::string& size : sizes) {
    experiment::Case c;
    c.index = static_cast<std::int64_t>(experiment.cases.size());
    c.axes = {{"size", size}};
    c.params = {{"size", size}, {"lr", 0.0001}, {"batch_size", std::int64_t{4}}, {"causal", true}};
    experiment.cases.push_back(c);
  }
  return experiment;
}

// As it reads back from a file, with its keys in their own order.
Json record_of(std::int64_t index, const std::string& size, const std::string& status) {
  const Json record{{"index", index},
                    {"axes", {{"size", size}}},
                    {"status", status},
                    {"params", {{"causal", true}, {"size", size}, {"lr", 0.0001}, {"batch_size", 4}}}};
  return Json::parse(record.dump());
}

// "index size status" of each.
std::vector<std::string> reported(const std::vector<record::CaseRecord>& records) {
  std::vector<std::string> result;
  for (const record::CaseRecord& r : records)
    result.push_back(std::to_string(r.identity.index) + " " + to_text(*record::find(r.identity.axes, "size")) + " " +
                     name_of(r.result.status));
  return result;
}

using Told = std::vector<std::string>;

TEST(CaseOrder, TheLastRecordOfACaseCounts) {
  EXPECT_EQ(reported(current_records(sweep({"small", "xl"}), {record_of(1, "xl", "crashed"),
                                                              record_of(0, "small", "ok"), record_of(1, "xl", "ok")})),
            (Told{"0 small ok", "1 xl ok"}));
}

TEST(CaseOrder, ACaseThatHasMovedTakesItsRecordAlong) {
  EXPECT_EQ(
      reported(current_records(sweep({"tiny", "small", "xl"}), {record_of(0, "small", "ok"), record_of(1, "xl", "oom"),
                                                                record_of(0, "tiny", "ok"), record_of(2, "xl", "ok")})),
      (Told{"0 tiny ok", "1 small ok", "2 xl ok"}));
}

TEST(CaseOrder, ARecordThatReachedNoDeviceIsOfTheCaseAsItWasRead) {
  experiment::Experiment experiment = sweep({"small"});
  experiment.cases[0].params_of_any_device = experiment.cases[0].params;
  experiment.cases[0].params["causal"] = false;
  Json with_device = record_of(0, "small", "ok");
  with_device["params"]["causal"] = false;
  const auto records = current_records(experiment, {record_of(0, "small", "failed"), with_device});
  EXPECT_EQ(reported(records), (Told{"0 small ok"}));
  EXPECT_FALSE(records[0].is_former);
}

TEST(CaseOrder, RecordsOfOtherCasesAreFormerOnes) {
  const auto records = current_records(sweep({"small"}), {record_of(0, "small", "ok"), record_of(1, "xl", "ok")});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].is_former);
  EXPECT_TRUE(records[1].is_former);
}

TEST(CaseOrder, RecordsOfOtherCasesStay) {
  EXPECT_EQ(reported(current_records(sweep({"small"}), {record_of(0, "small", "ok"), record_of(1, "xl", "failed"),
                                                        record_of(1, "xl", "ok"), record_of(0, "large", "ok")})),
            (Told{"0 small ok", "0 large ok", "1 xl ok"}));
}

TEST(CaseOrder, TheSameValuesTwiceAreTwoCases) {
  EXPECT_EQ(
      reported(current_records(sweep({"small", "small"}), {record_of(0, "small", "ok"), record_of(1, "small", "oom")})),
      (Told{"0 small ok", "1 small oom"}));
}

TEST(CaseOrder, ARecordWithoutAnIndexIsKept) {
  Json record = record_of(0, "xl", "ok");
  record.erase("index");
  const auto kept = current_records(sweep({}), {record});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(record::to_json(kept[0]), as_read(record));
}

TEST(CaseOrder, ARepeatIsNoLaterLineOfItsCase) {
  experiment::Experiment twice = sweep({"small", "xl"});
  for (const std::size_t i : {0u, 1u}) {
    twice.cases.push_back(twice.cases[i]);
    twice.cases[i].repeat = 1;
    twice.cases.back().repeat = 2;
  }
  Json second = record_of(0, "small", "failed"), again = record_of(0, "small", "oom");
  second["repeat"] = 2, again["repeat"] = 2;
  // The first is of a run that had no repeats yet.
  const auto records = current_records(twice, {record_of(0, "small", "ok"), second, again, record_of(1, "xl", "ok")});
  EXPECT_EQ(reported(records), (Told{"0 small ok", "0 small oom", "1 xl ok"}));
  EXPECT_EQ(records[0].identity.repeat, 1);
  EXPECT_EQ(records[1].identity.repeat, 2);
  for (const auto& record : records) EXPECT_FALSE(record.is_former);
}

TEST(CaseOrder, RepeatsThatTheExperimentHasNoMoreAreFormerOnes) {
  Json first = record_of(0, "small", "ok"), second = record_of(0, "small", "ok");
  first["repeat"] = 1, second["repeat"] = 2;
  const auto records = current_records(sweep({"small"}), {first, second});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_FALSE(records[0].is_former);
  EXPECT_FALSE(records[0].identity.repeat);
  EXPECT_TRUE(records[1].is_former);
}

}  // namespace
}  // namespace assay::host::results
