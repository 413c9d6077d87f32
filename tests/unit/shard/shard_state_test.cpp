#include "shard/shard_state.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/files.hpp"
#include "shard/journal.hpp"
#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::shard {
namespace {

using Event = JournalEntry::Event;

class State : public ::testing::Test {
 protected:
  void attempt(std::int64_t number, const std::vector<JournalEntry>& entries, const std::string& verdict = "",
               const std::string& records = "") {
    const auto folder = shard_ / fmt::format("attempts/{:04}", number);
    test::put_file(folder / "claim.json", "{\"job\":\"7\"}");
    Journal journal(folder / "journal.jsonl");
    for (const JournalEntry& entry : entries) journal.append(entry);
    if (!records.empty()) test::put_file(folder / "cases.jsonl", records);
    if (!verdict.empty()) write_end(folder, {verdict, "", 2000});
  }
  ShardState read() const { return read_shard_state(shard_.path()); }
  test::TemporaryFolder shard_;
};

JournalEntry begin(std::int64_t index, double at_s = 1000) { return {Event::begin, index, at_s, ""}; }
JournalEntry end(std::int64_t index, const std::string& status = "ok") { return {Event::end, index, 1001, status}; }

TEST_F(State, AnEmptyShardHasNone) {
  EXPECT_TRUE(read().attempts.empty());
  EXPECT_TRUE(read().cases.empty());
  EXPECT_FALSE(read().is_finished(0));
}

TEST_F(State, WhatGoesOnIsAtHandAndNotUnfinished) {
  attempt(1, {begin(0), end(0), begin(1, 1234)});
  const ShardState state = read();
  EXPECT_TRUE(state.is_finished(0));
  EXPECT_FALSE(state.is_finished(1));
  EXPECT_TRUE(state.cases.at(1).is_at_hand);
  EXPECT_EQ(state.cases.at(1).unfinished, 0);
  EXPECT_EQ(state.cases.at(1).last_begin_s, 1234);
}

TEST_F(State, WhatWasAtHandWhenAnAttemptWasKilledIsCounted) {
  attempt(1, {begin(0)});
  attempt(2, {begin(0)});
  attempt(3, {begin(1)});
  const ShardState state = read();
  EXPECT_EQ(state.cases.at(0).unfinished, 2);
  EXPECT_EQ(state.cases.at(0).begun, 2);
  EXPECT_FALSE(state.cases.at(0).is_at_hand);
  EXPECT_TRUE(state.cases.at(1).is_at_hand);
  EXPECT_GE(state.cases.at(0).unfinished, most_unfinished);
}

TEST_F(State, AnAttemptThatEndedHasNothingAtHand) {
  attempt(1, {begin(0)}, "stopped");
  EXPECT_FALSE(read().cases.at(0).is_at_hand);
  EXPECT_EQ(read().cases.at(0).unfinished, 1);
}

TEST_F(State, WhatWasLeftIsNotTheCasesDoing) {
  attempt(1, {begin(0), {Event::left, 0, 1001, ""}}, "stopped");
  attempt(2, {});
  EXPECT_EQ(read().cases.at(0).unfinished, 0);
  EXPECT_FALSE(read().is_finished(0));
}

TEST_F(State, ARecordWithoutItsLineInTheJournalCounts) {
  attempt(1, {begin(0)}, "", "{\"index\":0,\"status\":\"oom\"}\n");
  EXPECT_TRUE(read().is_finished(0));
  EXPECT_EQ(read().cases.at(0).status, "oom");
  EXPECT_FALSE(read().cases.at(0).is_at_hand);
  attempt(2, {begin(1)});
  EXPECT_EQ(read().cases.at(0).unfinished, 0);
}

TEST_F(State, ARecordOfAnotherCaseDoesNot) {
  attempt(1, {begin(0), end(0), begin(1)}, "", "{\"index\":0,\"status\":\"ok\"}\n");
  EXPECT_FALSE(read().is_finished(1));
  EXPECT_TRUE(read().cases.at(1).is_at_hand);
}

TEST_F(State, ATornRecordDoesNotCountAtAnyByte) {
  const std::string first = "{\"index\":0,\"status\":\"ok\"}\n", second = "{\"index\":1,\"status\":\"ok\"}\n";
  for (std::size_t length = 0; length <= second.size(); ++length) {
    attempt(1, {}, "", first + second.substr(0, length));
    std::filesystem::remove(shard_ / "attempts/0001/journal.jsonl");
    attempt(1, {begin(0), end(0), begin(1)});
    EXPECT_EQ(read().is_finished(1), length == second.size()) << length;
    EXPECT_TRUE(read().is_finished(0));
  }
}

TEST_F(State, AJournalTornAnywhereNeverFinishesMoreThanItSays) {
  attempt(1, {begin(0), end(0), begin(1), end(1)});
  const auto file = shard_ / "attempts/0001/journal.jsonl";
  const std::string whole = read_file(file);
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    test::put_file(file, whole.substr(0, length));
    const ShardState state = read();
    EXPECT_EQ(state.is_finished(1), length == whole.size()) << length;
    std::size_t finished = 0;
    for (const auto& [index, trace] : state.cases) finished += state.is_finished(index) ? 1 : 0;
    EXPECT_LE(finished, 2U);
  }
}

TEST_F(State, QuarantineIsAnEnd) {
  attempt(1, {begin(0)});
  attempt(2, {begin(0)});
  attempt(3, {{Event::quarantine, 0, 1003, "crashed"}}, "done");
  EXPECT_TRUE(read().is_finished(0));
  EXPECT_TRUE(read().cases.at(0).is_quarantined);
}

TEST_F(State, ThePlanComesBackWithWhatEarlierShardsSaid) {
  const ShardPlan plan{{3, 7}, {10.5, 20}, {0, 1}, "/e/x.toml",
                       "aa",   "/p/x.so",  "bb",   {true, "id7", {"A", "B=c d"}, "west", {"/h.toml", 1.5, {}, 60}},
                       true};
  write_shard_plan(shard_.path(), plan);
  flush_shard_plan(shard_.path());
  const ShardPlan read = read_shard_plan(shard_.path());
  EXPECT_EQ(read.cases, plan.cases);
  EXPECT_EQ(read.unfinished_before_of(7), 1);
  EXPECT_EQ(read.unfinished_before_of(8), 0);
  EXPECT_EQ(read.budget_s_of(3), 10.5);
  EXPECT_EQ(read.budget_s_of(8), 0);
  EXPECT_TRUE(read.is_canary);
  EXPECT_EQ(read.plugin_hash, "bb");
  EXPECT_TRUE(read.promised.has_gpus);
  EXPECT_EQ(read.promised.batch_id, "id7");
  EXPECT_EQ(read.promised.environment, (std::vector<std::string>{"A", "B=c d"}));
  EXPECT_EQ(read.promised.cluster, "west");
  EXPECT_EQ(read.promised.health.experiment, "/h.toml");
  EXPECT_EQ(read.promised.health.tflop_per_s_min, 1.5);
  EXPECT_FALSE(read.promised.health.gbytes_per_s_min);
  EXPECT_EQ(read.promised.health.timeout_s, 60);
}

TEST_F(State, APlanThatIsHalfOneIsRefused) {
  write_shard_plan(shard_.path(), {{3, 7}, {10.5, 20}, {0, 1}, "/e/x.toml", "aa", "/p/x.so", "bb", true});
  const std::string whole = read_file(shard_ / "shard.json");
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    test::put_file(shard_ / "shard.json", whole.substr(0, length));
    EXPECT_THROW(read_shard_plan(shard_.path()), StorageError) << length;
  }
  write_shard_plan(shard_.path(), {{3, 7}, {10.5}, {0, 1}, "", "", "", "", false});
  EXPECT_THROW(read_shard_plan(shard_.path()), StorageError);
  EXPECT_THROW(flush_shard_plan(shard_ / "nowhere"), StorageError);
}

TEST_F(State, FilesOfAStartAreTellable) {
  EXPECT_EQ(verdict_file("/s", {"7", 2}), "/s/verdict-7-2");
  EXPECT_EQ(stop_file("/s", {"", 0}), "/s/stop");
}

}  // namespace
}  // namespace assay::host::shard
