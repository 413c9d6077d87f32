#include "batch/collect.hpp"

#include <gtest/gtest.h>

#include <map>

#include "batch_run.hpp"
#include "results/environments.hpp"
#include "results/reader.hpp"
#include "unit/record/sample_record.hpp"

namespace assay::host::batch {
namespace {

constexpr const char* submitted_hash = "00c0ffee00c0ffee";

std::string line(std::int64_t index, const std::string& started, const std::string& status = "ok",
                 const std::string& plugin_hash = submitted_hash) {
  Json record = ok_record();
  record["index"] = index, record["axes"]["size"] = index, record["params"]["size"] = index;
  record["status"] = status, record["started"] = started;
  record["plugin"] = Json{{"id", "demo"}, {"file_hash", plugin_hash}};
  return record.dump() + "\n";
}

class Collect : public ::testing::Test, protected BatchRun {
 protected:
  std::string cases() const { return read_file(run_ / "cases.jsonl"); }
  Collected collect() {
    submission_.plugin_hash = submitted_hash;
    return collect_batch(run_, submission_);
  }
};

TEST_F(Collect, EachRecordOnceAndTwiceIsTheSame) {
  submit({{0, 1}, {2}});
  attempt(0, 1, 1, {}, "done", line(2, "2026-11-20T12:00:03Z"));
  attempt(0, 0, 1, {}, "", line(0, "2026-11-20T12:00:01Z"));
  attempt(0, 0, 2, {}, "done", line(1, "2026-11-20T12:00:02Z"));
  const Collected first = collect();
  EXPECT_EQ(first.records, 3);
  EXPECT_EQ(first.added, 3);
  const std::string once = cases();
  EXPECT_EQ(once, line(0, "2026-11-20T12:00:01Z") + line(1, "2026-11-20T12:00:02Z") + line(2, "2026-11-20T12:00:03Z"));
  const Collected second = collect();
  EXPECT_EQ(second.records, 3);
  EXPECT_EQ(second.added, 0);
  EXPECT_EQ(cases(), once);
}

TEST_F(Collect, RecordsOfAnotherPluginOrOfOtherCasesAreLeftOutAndTold) {
  submit({{0, 1}});
  attempt(0, 0, 1, {}, "done",
          line(0, "2026-11-20T12:00:01Z") + line(1, "2026-11-20T12:00:02Z", "ok", "another") +
              line(7, "2026-11-20T12:00:03Z"));
  const Collected collected = collect();
  EXPECT_EQ(collected.records, 1);
  ASSERT_EQ(collected.notes.size(), 1U);
  EXPECT_NE(collected.notes[0].find("2 record(s) of another plugin"), std::string::npos) << collected.notes[0];
}

// A record whose parameters and axes have names of its own members.
std::string line_with_its_names(std::int64_t index, const std::string& started) {
  Json record = Json::parse(line(index, started));
  for (const char* where : {"axes", "params"})
    record[where] = Json{
        {"file_hash", "of the axis"}, {"index", 40 - index}, {"started", 40 - index}, {"files", {{"host", index}}}};
  record["params"]["started"] = "2026-11-20T00:00:0" + std::to_string(index);
  Json ordered{{"axes", record["axes"]}, {"params", record["params"]}};  // before what they are named after
  ordered.update(record);
  return ordered.dump() + "\n";
}

TEST_F(Collect, NamesOfParametersAreNotMembersOfTheRecord) {
  submit({{0, 1}});
  const std::string early = line_with_its_names(1, "2026-11-20T12:00:01Z"),
                    late = line_with_its_names(0, "2026-11-20T12:00:02Z");
  attempt(0, 0, 1, {}, "done", late + early);
  const Collected collected = collect();
  EXPECT_EQ(collected.records, 2);
  EXPECT_TRUE(collected.notes.empty()) << collected.notes[0];
}

TEST_F(Collect, PartsAreOrderedByTheStartOfTheRecordWhateverAParameterIsCalled) {
  const std::string early = line_with_its_names(1, "2026-11-20T12:00:01Z"),
                    late = line_with_its_names(0, "2026-11-20T12:00:02Z");
  test::put_file(folder_ / "a/cases.jsonl", late);
  test::put_file(folder_ / "b/cases.jsonl", early);
  EXPECT_EQ(merge_runs(run_, {folder_ / "a", folder_ / "b"}).records, 2);
  EXPECT_EQ(cases(), early + late);
}

TEST_F(Collect, NothingYetIsNoMistake) {
  submit({{0}});
  EXPECT_EQ(collect().records, 0);
}

TEST_F(Collect, ATornLastLineWaits) {
  submit({{0, 1}});
  const std::string whole = line(0, "2026-11-20T12:00:01Z"), next = line(1, "2026-11-20T12:00:02Z");
  for (std::size_t length = 0; length < next.size(); length += 97) {
    attempt(0, 0, 1, {}, "", whole + next.substr(0, length));
    EXPECT_EQ(collect().records, 1) << length;
    EXPECT_EQ(cases(), whole);
  }
  attempt(0, 0, 1, {}, "", whole + next);
  EXPECT_EQ(collect().added, 1);
  EXPECT_EQ(cases(), whole + next);
}

TEST_F(Collect, RecordsOfARunThatWasGoneOnWithByHandStay) {
  submit({{0}});
  test::put_file(run_ / "cases.jsonl", line(5, "2026-11-20T13:00:00Z"));
  attempt(0, 0, 1, {}, "done", line(0, "2026-11-20T12:00:01Z"));
  EXPECT_EQ(collect().records, 2);
  EXPECT_EQ(cases(), line(0, "2026-11-20T12:00:01Z") + line(5, "2026-11-20T13:00:00Z"));
}

TEST_F(Collect, TheNewestRecordOfACaseStandsLast) {
  submit({{0}});
  submit({{0}});
  attempt(1, 0, 1, {}, "done", line(0, "2026-11-20T14:00:00Z"));
  attempt(0, 0, 1, {}, "done", line(0, "2026-11-20T12:00:00Z", "crashed"));
  collect();
  const auto records = results::read_cases(run_ / "cases.jsonl").records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].result.status_text(), "crashed");
  EXPECT_TRUE(records[1].result.is_ok());
}

// By time, whoever made it: a run may be gone on with by hand, and submitted again after that.
TEST_F(Collect, TheNewestRecordOfACaseStandsLastWhereverItWasMade) {
  submit({{0, 1}});
  attempt(0, 0, 1, {}, "done", line(0, "2026-11-20T12:00:00Z", "crashed") + line(1, "2026-11-20T12:01:00Z", "crashed"));
  collect();
  test::put_file(run_ / "cases.jsonl",
                 cases() + line(0, "2026-11-20T13:00:00Z", "timeout") + line(1, "2026-11-20T15:00:00Z", "timeout"));
  submit({{0, 1}});
  attempt(1, 0, 1, {}, "done", line(0, "2026-11-20T14:00:00Z") + line(1, "2026-11-20T14:01:00Z"));
  const Collected collected = collect();
  EXPECT_EQ(collected.records, 6);
  EXPECT_EQ(collected.added, 2);
  std::map<std::int64_t, std::string> last;
  for (const auto& record : results::read_cases(run_ / "cases.jsonl").records)
    last[record.identity.index] = record.result.status_text();
  EXPECT_EQ(last.at(0), "ok");
  EXPECT_EQ(last.at(1), "timeout");
}

// The record that a resumed run puts behind one of other code says when that one was made.
TEST_F(Collect, WhatIsOutdatedStaysSo) {
  submit({{0}});
  attempt(0, 0, 1, {}, "done", line(0, "2026-11-20T12:00:00Z"));
  collect();
  const std::string outdated = line(0, "2026-11-20T12:00:00Z", "outdated");
  test::put_file(run_ / "cases.jsonl", cases() + outdated);
  collect();
  EXPECT_EQ(cases(), line(0, "2026-11-20T12:00:00Z") + outdated);
}

TEST_F(Collect, BrokenLinesAreLeftOutAndTold) {
  submit({{0, 1, 2}});
  const std::string first = line(0, "2026-11-20T12:00:01Z"), second = line(1, "2026-11-20T12:00:02Z"),
                    third = line(2, "2026-11-20T12:00:03Z"), half = second.substr(0, second.size() / 2) + "\n";
  test::put_file(run_ / "cases.jsonl", half + first);
  attempt(0, 0, 1, {}, "done", half + second + R"({"index":2,"plugin":{"file_hash":")" + submitted_hash + "\"}}\n");
  attempt(0, 0, 2, {}, "done", third);
  const Collected collected = collect();
  EXPECT_EQ(collected.records, 3);
  EXPECT_EQ(collected.added, 2);
  EXPECT_EQ(cases(), first + second + third);
  ASSERT_EQ(collected.notes.size(), 2U);
  EXPECT_NE(collected.notes[0].find("0001/cases.jsonl: 2 line(s) that are no record, the first of them line 1"),
            std::string::npos)
      << collected.notes[0];
  EXPECT_NE(collected.notes[1].find(run_.string() + "/cases.jsonl: 1 line(s)"), std::string::npos)
      << collected.notes[1];
  EXPECT_NE(collected.notes[1].find("/cases.jsonl.old keeps them"), std::string::npos) << collected.notes[1];
  EXPECT_EQ(read_file(run_ / "cases.jsonl.old"), half + first);
  EXPECT_TRUE(collect().notes.size() == 1U) << "the attempt's";
}

TEST_F(Collect, BrokenLinesOfPartsAreLeftOutAndTold) {
  const std::string whole = line(0, "2026-11-20T12:00:01Z");
  test::put_file(folder_ / "a/cases.jsonl", whole.substr(0, 100) + "\n" + whole);
  const Collected collected = merge_runs(run_, {folder_ / "a"});
  EXPECT_EQ(cases(), whole);
  ASSERT_EQ(collected.notes.size(), 1U);
  EXPECT_NE(collected.notes[0].find("1 line(s) that are no record"), std::string::npos) << collected.notes[0];
}

TEST_F(Collect, DoubledLinesHideNoNewOnes) {
  submit({{0, 1}});
  const std::string first = line(0, "2026-11-20T12:00:01Z"), second = line(1, "2026-11-20T12:00:02Z");
  test::put_file(run_ / "cases.jsonl", first + first);
  attempt(0, 0, 1, {}, "done", first + second);
  const Collected collected = collect();
  EXPECT_EQ(collected.records, 2);
  EXPECT_EQ(collected.added, 1);
  EXPECT_EQ(cases(), first + second);
}

// Its writer was killed between the two writes of a line, or its file was copied without its end.
TEST_F(Collect, ARecordIsWholeWithoutTheEndOfItsLine) {
  submit({{0, 1}});
  const std::string first = line(0, "2026-11-20T12:00:01Z"), second = line(1, "2026-11-20T12:00:02Z");
  attempt(0, 0, 1, {}, "", first + second.substr(0, second.size() - 1));
  EXPECT_EQ(collect().records, 2);
  attempt(0, 0, 1, {}, "", first + second);
  EXPECT_EQ(collect().added, 0);
  EXPECT_EQ(cases(), first + second);
}

TEST_F(Collect, TheRecordsAreThoseOfTheFile) {
  submit({{0, 1}});
  attempt(0, 0, 1, {}, "done", line(1, "2026-11-20T12:00:02Z"));
  attempt(0, 0, 2, {}, "done", line(0, "2026-11-20T12:00:03Z"));
  test::put_file(run_ / "cases.jsonl", line(5, "2026-11-20T12:00:01Z"));
  for (int time = 0; time < 2; ++time) {
    std::vector<std::int64_t> indexes;
    for (const auto& record : collect().cases.records) indexes.push_back(record.identity.index);
    EXPECT_EQ(indexes, (std::vector<std::int64_t>{5, 1, 0}));
  }
}

TEST_F(Collect, TheEnvironmentNamesEveryMachineAndJob) {
  submit({{0}, {1}});
  const auto put = [](const std::filesystem::path& folder, const std::string& host, const std::string& job) {
    test::put_file(folder / "environment.json",
                   Json{{"os", {{"hostname", host}}}, {"job", {{"id", job}}}, {"cpu", "x"}}.dump());
  };
  put(attempt(0, 0, 1, {}), "n1", "70");
  put(attempt(0, 0, 2, {}), "n2", "70");
  put(attempt(0, 1, 1, {}), "n1", "71");
  test::put_file(attempt(0, 1, 2, {}) / "environment.json", "half a fi");
  collect();
  const Json environment = Json::parse(read_file(run_ / "environment.json"));
  EXPECT_EQ(environment["cpu"], "x");
  EXPECT_FALSE(environment.contains("job"));
  EXPECT_EQ(environment["collected_from"],
            Json::parse(R"([{"host":"n1","jobs":["70","71"]},{"host":"n2","jobs":["70"]}])"));
}

TEST_F(Collect, EveryEnvironmentOfTheAttemptsIsThere) {
  submit({{0}, {1}});
  const auto begin = [](const std::filesystem::path& folder, const std::string& driver, const std::string& job) {
    return results::add_invocation(folder, Json{{"gpu", {{"driver", driver}}}, {"job", {{"id", job}}}}.dump());
  };
  const std::string first = begin(attempt(0, 0, 1, {}), "580.1", "70");
  begin(attempt(0, 0, 2, {}), "580.1", "71");
  const std::string other = begin(attempt(0, 1, 1, {}), "590.2", "72");
  for (int time = 0; time < 2; ++time) {
    collect();
    std::vector<std::string> warnings;
    const results::Environments all = results::read_environments(run_, warnings);
    ASSERT_EQ(all.size(), 3U) << "with that of the login node, which made the folder";
    EXPECT_EQ(all.at(first).invocations().size(), 2U);
    EXPECT_EQ(all.at(other).fact_or("gpu.driver", ""), "590.2");
  }
}

TEST_F(Collect, PartsOfASweepBecomeOneRun) {
  test::put_file(folder_ / "a/cases.jsonl", line(0, "2026-11-20T12:00:01Z"));
  test::put_file(folder_ / "b/cases.jsonl", line(1, "2026-11-20T12:00:00Z"));
  EXPECT_EQ(merge_runs(run_, {folder_ / "a", folder_ / "b", folder_ / "nowhere"}).records, 2);
  EXPECT_EQ(cases(), line(1, "2026-11-20T12:00:00Z") + line(0, "2026-11-20T12:00:01Z"));
}

// A line with the hashes of its files, of a case on such a device.
std::string line_of_build(int index, const std::string& kind, const Json& files) {
  Json record = Json::parse(line(index, "2026-11-20T12:00:00Z"));
  record["axes"] = Json{{"i", index}};
  record["files"] = files, record["device"] = Json{{"kind", kind}};
  return record.dump() + "\n";
}

TEST_F(Collect, PartsThatWereMadeByDifferentBuildsAreRefused) {
  const auto complaint = [&] {
    try {
      check_parts({folder_ / "a", folder_ / "b"});
    } catch (const StorageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  test::put_file(folder_ / "a/cases.jsonl",
                 line_of_build(0, "cpu", {{"host", "h"}, {"device", "0123456789abcdef"}, {"input.w", "1"}}));
  test::put_file(folder_ / "b/cases.jsonl",
                 line_of_build(1, "cuda", {{"host", "h"}, {"device", "2"}, {"input.w", "2"}}));
  EXPECT_EQ(complaint(), "") << "another kind of device has another backend";
  test::put_file(folder_ / "b/cases.jsonl", line_of_build(1, "cpu", {{"host", "h"}, {"device", "2"}}));
  EXPECT_NE(complaint().find("different builds of the device cpu: SHA-256 0123456789ab and 2;"), std::string::npos)
      << complaint();
  // What was run again counts as it is now.
  test::put_file(folder_ / "b/cases.jsonl",
                 line_of_build(1, "cpu", {{"host", "h"}, {"device", "2"}}) +
                     line_of_build(1, "cpu", {{"host", "h"}, {"device", "0123456789abcdef"}}));
  EXPECT_EQ(complaint(), "");
}

TEST_F(Collect, ABatchWhoseRecordsWereMadeByDifferentBuildsSaysSo) {
  submit({{0}, {1}});
  attempt(0, 0, 1, {}, "done", line_of_build(0, "cpu", {{"host", "h"}, {"device", "1"}}));
  attempt(0, 1, 1, {}, "done", line_of_build(1, "cpu", {{"host", "h"}, {"device", "2"}}));
  const Collected collected = collect();
  ASSERT_EQ(collected.notes.size(), 1U);
  EXPECT_NE(collected.notes[0].find("2 builds of the device cpu"), std::string::npos) << collected.notes[0];
}

}  // namespace
}  // namespace assay::host::batch
