#include "record/json.hpp"

#include "record/environment.hpp"
#include "sample_record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "support/trials.hpp"

namespace assay::host::record {
namespace {

namespace fs = std::filesystem;

// What reading and writing adds to JSON that was written by another hand.
void expect_kept(const Json& before, const Json& after, const std::string& where) {
  if (before.is_object()) {
    ASSERT_TRUE(after.is_object()) << where;
    for (const auto& [key, value] : before.items()) {
      ASSERT_TRUE(after.contains(key)) << where << "/" << key;
      expect_kept(value, after[key], where + "/" + key);
    }
  } else if (before.is_array()) {
    ASSERT_EQ(before.size(), after.size()) << where;
    for (std::size_t i = 0; i < before.size(); ++i) expect_kept(before[i], after[i], where + "/" + std::to_string(i));
  } else {
    EXPECT_EQ(before, after) << where;
  }
}

TEST(RecordJson, EveryPublishedRecordComesBackWhole) {
  std::size_t lines = 0;
  constexpr std::size_t each = 10 / assay::test::that_many(10);
  for (const auto& entry : fs::recursive_directory_iterator(ASSAY_PUBLISHED)) {
    if (entry.path().filename() != "cases.jsonl") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line); ++lines) {
      if (lines % each != 0) continue;
      const auto record = record_from_line(line);
      ASSERT_TRUE(record) << entry.path();
      expect_kept(Json::parse(line), Json::parse(to_line(*record)), entry.path().string());
      EXPECT_EQ(to_line(*record_from_line(to_line(*record))), to_line(*record)) << "a second reading changes nothing";
    }
  }
  EXPECT_GT(lines, 400u);
}

TEST(RecordJson, ALineWithoutAStatusIsNoRecord) {
  for (const char* line : {"", "[]", "{}", "3", R"({"status": 1})", R"({"status": "ok")"})
    EXPECT_FALSE(record_from_line(line)) << line;
  EXPECT_TRUE(record_from_line(R"({"status": "ok"})"));
}

TEST(RecordJson, ValuesOfAnotherAssayAreKeptAsText) {
  const auto record = record_from_line(
      R"({"params": {"a": {"b": [1, -2, 18446744073709551615, 0.5, null, true, "\u00e9\"", {}]}, "c": 9223372036854775808},
      "index": 7, "status": "ok"})");
  ASSERT_TRUE(record);
  EXPECT_EQ(std::get<std::string>(record->identity.params.at(0).second),
            "{\"b\":[1,-2,18446744073709551615,0.5,null,true,\"\xc3\xa9\\\"\",{}]}");
  EXPECT_EQ(std::get<double>(record->identity.params.at(1).second), 9223372036854775808.0);
  EXPECT_EQ(record->identity.index, 7) << "found in any order";
}

TEST(RecordJson, WhatIsNestedTooDeepIsNoRecord) {
  const auto nested = [](std::size_t levels) {
    return R"({"status": "ok", "params": {"a": )" + std::string(levels, '[') + std::string(levels, ']') + "}}";
  };
  EXPECT_TRUE(record_from_line(nested(200)));
  EXPECT_FALSE(record_from_line(nested(255)));
  EXPECT_FALSE(record_from_line(nested(100'000)));
}

TEST(RecordJson, AStatusThatThisVersionDoesNotKnowKeepsItsWord) {
  const auto record = record_from_line(R"({"status": "cancelled"})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->result.status, Status::unknown);
  EXPECT_FALSE(record->result.is_ok());
  EXPECT_EQ(to_json(*record)["status"], "cancelled");
  EXPECT_EQ(csv_text(cell_of(*record, "status")), "cancelled");
}

TEST(RecordJson, AMetricWithoutAValueIsNoZero) {
  const auto record = record_from_line(
      R"({"status": "ok", "metrics": {"figure": {"unit": "", "direction": 0}}, "telemetry": {"power_w": {"min": 1}}})");
  ASSERT_TRUE(record);
  EXPECT_TRUE(cell_of(*record, "figure").empty());
  EXPECT_TRUE(cell_of(*record, "telemetry.power_w.mean").empty());
  EXPECT_EQ(csv_text(cell_of(*record, "telemetry.power_w.min")), "1.0");
}

TEST(RecordJson, EveryStatusHasAName) {
  for (const Status status : {Status::ok, Status::oom, Status::timeout, Status::crashed, Status::unsupported,
                              Status::wrong_result, Status::failed})
    EXPECT_EQ(status_of(name_of(status)), status);
  for (const Verification verification :
       {Verification::ok, Verification::partial, Verification::wrong_result, Verification::not_checked})
    EXPECT_EQ(verification_of(name_of(verification)), verification);
  for (const auto verdict : {ValidityVerdict::valid, ValidityVerdict::power_limited, ValidityVerdict::unknown,
                             ValidityVerdict::throttled, ValidityVerdict::contended})
    EXPECT_EQ(validity_verdict_of(name_of(verdict)), verdict);
  EXPECT_FALSE(status_of("OK"));
}

TEST(RecordJson, AFieldOfAnotherTypeCountsAsAbsent) {
  const auto record = record_from_line(
      R"({"status": "ok", "reason": 3, "index": "first", "axes": [1], "metrics": {"a": 1, "b": {"value": 2.5}},
          "phases": {"step": {"mean_ms": "fast", "std_ms": 1.5}}, "notes": "none", "by_rank": 4, "drift": "up"})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->result.reason, "");
  EXPECT_EQ(record->identity.index, -1);
  EXPECT_TRUE(record->identity.axes.empty());
  ASSERT_TRUE(record->result.metrics);
  EXPECT_EQ(record->result.metrics->size(), 1u);
  EXPECT_FALSE(record->result.phases->front().second.mean_ms);
  EXPECT_EQ(record->result.phases->front().second.std_ms, 1.5);
  EXPECT_FALSE(record->result.notes);
  EXPECT_FALSE(record->result.drift);
}

TEST(RecordJson, WhatIsNoNumberIsNullAndNotAbsent) {
  CaseRecord record;
  record.result.drift = std::numeric_limits<double>::quiet_NaN();
  const Json json = to_json(record);
  EXPECT_TRUE(json.contains("drift"));
  EXPECT_TRUE(Json::parse(to_line(record))["drift"].is_null());
  const auto read = record_from_line(to_line(record));
  ASSERT_TRUE(read && read->result.drift);
  EXPECT_TRUE(std::isnan(*read->result.drift));
  EXPECT_FALSE(json.contains("spread"));
}

TEST(RecordJson, ARanksMetricThatIsNoNumberComesBack) {
  CaseRecord record;
  record.result.by_rank.resize(1);
  record.result.by_rank[0].metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()}};
  const std::string line = to_line(record);
  EXPECT_TRUE(Json::parse(line)["by_rank"][0]["metrics"]["loss"].is_null());
  EXPECT_EQ(to_line(*record_from_line(line)), line);
}

TEST(RecordJson, AnIntegerThatDoesNotFitCountsAsAbsent) {
  const auto record = record_from_line(
      R"({"status": "ok", "index": 1e300, "ranks": 5000000000, "rank": 1.5, "work": {"flops": -1, "items": 8.0}})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->identity.index, -1);
  EXPECT_FALSE(record->identity.ranks);
  EXPECT_FALSE(record->result.rank);
  EXPECT_EQ(record->result.work->flops, 0u);
  EXPECT_EQ(record->result.work->items, 8u);
}

TEST(RecordJson, OfDoubledKeysTheLastOneCounts) {
  const char* line =
      R"({"status": "failed", "status": "ok", "index": 1, "reason": "a", "params": {"n": 1, "m": 2, "n": 7}, "index": 4,
          "phases": {"step": {"mean_ms": 2.5, "mean_ms": 99}}, "axes": {"a": 1}, "axes": {"b": 2}, "reason": "b"})";
  const auto record = record_from_line(line);
  ASSERT_TRUE(record);
  EXPECT_EQ(to_line(*record), to_line(*record_from_json(Json::parse(line)))) << "as nlohmann reads it";
  EXPECT_EQ(record->result.status, Status::ok);
  EXPECT_EQ(record->identity.index, 4);
  EXPECT_EQ(record->result.reason, "b");
  EXPECT_EQ(record->result.phases->front().second.mean_ms, 99);
  EXPECT_EQ(to_json(*record)["params"].dump(), R"({"n":7,"m":2})");
  EXPECT_EQ(to_json(*record)["axes"].dump(), R"({"b":2})");
  EXPECT_FALSE(record_from_line(R"({"status": "ok", "status": 5})"));
}

TEST(RecordJson, IntegersAtTheEndOfTheirRangeAreRead) {
  const auto record = record_from_line(
      R"({"status": "ok", "index": 9223372036854775807, "ranks": 2147483648, "rank": -2147483648,
          "work": {"flops": 18446744073709551615, "items": 9223372036854775808}})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->identity.index, INT64_MAX);
  EXPECT_EQ(record->result.work->flops, UINT64_MAX);
  EXPECT_EQ(record->result.work->items, std::uint64_t{1} << 63);
  EXPECT_FALSE(record_from_line(R"({"status": "ok", "ranks": 18446744073709551615})")->identity.ranks);
}

TEST(RecordJson, ALineWithANulIsNoRecord) {
  const std::string record = R"({"status": "ok"})";
  for (const std::string& line : {record + std::string(1, '\0'), record + std::string("\0garbage{", 10),
                                  std::string(2, '\0') + record, record + " " + std::string(1, '\0')})
    EXPECT_FALSE(record_from_line(line));
  EXPECT_TRUE(record_from_line(R"({"status": "ok", "reason": "a\u0000b"})"));
}

TEST(RecordJson, BytesThatAreNoUtf8AreReplaced) {
  CaseRecord record;
  record.result.reason = "bad \xff byte";
  EXPECT_EQ(record_from_line(to_line(record))->result.reason, "bad \xef\xbf\xbd byte");
}

TEST(RecordJson, ACountIsWrittenAsOne) {
  CaseRecord record;
  record.result.metrics = {{"parameters", {128625408.0, "", Direction::neither, std::nullopt}},
                           {"share", {0.5, "", Direction::neither, std::nullopt}},
                           {"huge", {1e300, "", Direction::neither, std::nullopt}}};
  const Json metrics = to_json(record)["metrics"];
  EXPECT_TRUE(metrics["parameters"]["value"].is_number_integer());
  EXPECT_EQ(metrics["share"]["value"], 0.5);
  EXPECT_EQ(metrics["huge"]["value"], 1e300);
}

TEST(RecordJson, OrderIsThatOfTheTables) {
  const Json json = as_read(Json::parse(
      R"({"status": "ok", "axes": {"z": 1, "a": 2}, "phases": {"step": {}, "forward": {}, "backward": {}}})"));
  EXPECT_EQ(json["axes"].dump(), R"({"z":1,"a":2})");
  EXPECT_EQ(json["phases"].dump(), R"({"step":{},"forward":{},"backward":{}})");
}

TEST(RecordJson, AResultWithoutAWorkerSaysNoMoreThanIsKnown) {
  const Json json = to_json(result_without_worker(Status::unsupported, "no such device"));
  EXPECT_EQ(json["status"], "unsupported");
  EXPECT_EQ(json["stage"], "load");
  for (const char* key : {"notes", "metrics", "phases", "memory", "device"}) EXPECT_FALSE(json.contains(key)) << key;
}

TEST(Environment, FactsStandByTheirDottedNames) {
  const auto environment = Environment::parse(
      R"({"schema": 1, "cpu": {"model": "AMD EPYC", "usable_cores": 2}, "load_average": [0.5, 1.0], "gpu": null})");
  ASSERT_TRUE(environment);
  EXPECT_EQ(environment->fact_or("cpu.model", ""), "AMD EPYC");
  EXPECT_EQ(environment->fact_or("cpu.usable_cores", ""), "2");
  EXPECT_EQ(environment->fact_or("load_average", ""), "[0.5,1.0]");
  EXPECT_EQ(environment->fact_or("gpu", "not told"), "not told");
  EXPECT_FALSE(Environment::parse("[]"));
  EXPECT_FALSE(Environment::parse("{"));
}

}  // namespace
}  // namespace assay::host::record
