#include "results/case_order.hpp"

#include "experiment/experiment.hpp"

#include <gtest/gtest.h>

namespace assay::host {
namespace {

Experiment sweep(const std::vector<std::string>& sizes) {
  Experiment experiment;
  for (const std::string& size : sizes) {
    Case c;
    c.index = static_cast<std::int64_t>(experiment.cases.size());
    c.axes = {{"size", size}};
    c.params = {{"size", size}, {"lr", 0.0001}, {"batch_size", std::int64_t{4}}, {"causal", true}};
    experiment.cases.push_back(c);
  }
  return experiment;
}

// As it reads back from a file, with its keys in an order of their own.
Record record_of(std::int64_t index, const std::string& size, const std::string& status) {
  const Record record{{"index", index},
                      {"axes", {{"size", size}}},
                      {"status", status},
                      {"params", {{"causal", true}, {"size", size}, {"lr", 0.0001}, {"batch_size", 4}}}};
  return Record::parse(record.dump());
}

// "index size status" of each.
std::vector<std::string> told(const std::vector<Record>& records) {
  std::vector<std::string> result;
  for (const Record& r : records)
    result.push_back(r["index"].dump() + " " + r["axes"]["size"].get<std::string>() + " " +
                     r["status"].get<std::string>());
  return result;
}

using Told = std::vector<std::string>;

TEST(CaseOrder, TheLastRecordOfACaseCounts) {
  EXPECT_EQ(told(current_records(sweep({"small", "xl"}), {record_of(1, "xl", "crashed"), record_of(0, "small", "ok"),
                                                          record_of(1, "xl", "ok")})),
            (Told{"0 small ok", "1 xl ok"}));
}

TEST(CaseOrder, ACaseThatHasMovedTakesItsRecordAlong) {
  EXPECT_EQ(
      told(current_records(sweep({"tiny", "small", "xl"}), {record_of(0, "small", "ok"), record_of(1, "xl", "oom"),
                                                            record_of(0, "tiny", "ok"), record_of(2, "xl", "ok")})),
      (Told{"0 tiny ok", "1 small ok", "2 xl ok"}));
}

TEST(CaseOrder, RecordsOfOtherCasesStay) {
  EXPECT_EQ(told(current_records(sweep({"small"}), {record_of(0, "small", "ok"), record_of(1, "xl", "failed"),
                                                    record_of(1, "xl", "ok"), record_of(0, "large", "ok")})),
            (Told{"0 small ok", "0 large ok", "1 xl ok"}));
}

TEST(CaseOrder, TheSameValuesTwiceAreTwoCases) {
  EXPECT_EQ(
      told(current_records(sweep({"small", "small"}), {record_of(0, "small", "ok"), record_of(1, "small", "oom")})),
      (Told{"0 small ok", "1 small oom"}));
}

TEST(CaseOrder, ARecordWithoutAnIndexIsKept) {
  Record record = record_of(0, "xl", "ok");
  record.erase("index");
  EXPECT_EQ(current_records(sweep({}), {record}), std::vector<Record>{record});
}

}  // namespace
}  // namespace assay::host
