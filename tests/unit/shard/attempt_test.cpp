#include "shard/attempt.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "support/files.hpp"
#include "support/temporary_folder.hpp"

namespace assay::host::shard {
namespace {

using test::put_file;

constexpr auto nobody_is_over = [](const AttemptClaim&) { return false; };
constexpr auto all_are_over = [](const AttemptClaim&) { return true; };

AttemptClaim claim_of(const std::string& job, std::int64_t restart = 0) {
  return {{job, restart}, "n1", 42, {"n1", "n2"}, 1000};
}

class Attempts : public ::testing::Test {
 protected:
  Claimed claim(const std::string& job, std::int64_t restart = 0, const IsOver& is_over = nobody_is_over) {
    return claim_next_attempt(shard_.path(), claim_of(job, restart), is_over);
  }
  test::TemporaryFolder shard_;
};

TEST_F(Attempts, TheFirstOneIsThereWithItsClaim) {
  const Claimed mine = claim("7");
  ASSERT_TRUE(mine.folder);
  EXPECT_EQ(mine.number, 1);
  const auto attempts = read_attempts(shard_.path());
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(attempts[0].claim.start.job, "7");
  EXPECT_EQ(attempts[0].claim.nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(attempts[0].claim.pid, 42);
  EXPECT_FALSE(attempts[0].end);
}

TEST_F(Attempts, OfManyProcessesOneGetsEachNumber) {
  constexpr int processes = 24;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(claim(std::to_string(i + 1)).folder ? 0 : 1);
    children.push_back(child);
  }
  int winners = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    winners += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(read_attempts(shard_.path()).size(), 1U);
  // Who did not get it leaves nothing behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(shard_ / "attempts"), {}), 1);
}

TEST_F(Attempts, WhoBelieveAllOthersGoneGetDifferentNumbers) {
  constexpr std::size_t threads = 16;
  std::vector<std::int64_t> numbers(threads);
  std::vector<std::thread> claiming;
  for (std::size_t i = 0; i < threads; ++i)
    claiming.emplace_back([&, i] { numbers[i] = claim(std::to_string(i + 1), 0, all_are_over).number; });
  for (std::thread& each : claiming) each.join();
  EXPECT_EQ(std::set<std::int64_t>(numbers.begin(), numbers.end()).size(), threads);
  EXPECT_EQ(*std::max_element(numbers.begin(), numbers.end()), static_cast<std::int64_t>(threads));
  EXPECT_EQ(read_attempts(shard_.path()).size(), threads);
}

TEST_F(Attempts, AnotherJobWaitsForALivingOne) {
  ASSERT_TRUE(claim("7").folder);
  const Claimed other = claim("8");
  EXPECT_FALSE(other.folder);
  EXPECT_EQ(other.number, 1);
  EXPECT_EQ(other.holder.start.job, "7");
  EXPECT_EQ(other.holder.host, "n1");
}

TEST_F(Attempts, TheSameJobTakesOverWhenItStartsAgain) {
  ASSERT_TRUE(claim("7", 0).folder);
  EXPECT_FALSE(claim("7", 0).folder) << "the same start twice is two processes";
  const Claimed again = claim("7", 1);
  ASSERT_TRUE(again.folder);
  EXPECT_EQ(again.number, 2);
  EXPECT_FALSE(claim("7", 0).folder) << "an earlier start never takes from a later one";
}

TEST_F(Attempts, ByHandNothingIsTakenOver) {
  ASSERT_TRUE(claim("").folder);
  EXPECT_FALSE(claim("", 1).folder);
}

TEST_F(Attempts, AnEndedOneIsNoHindrance) {
  const Claimed first = claim("7");
  write_end(*first.folder, {"done", "a reason with \xff in it", 2000});
  const Claimed second = claim("8");
  EXPECT_EQ(second.number, 2);
  const auto attempts = read_attempts(shard_.path());
  ASSERT_TRUE(attempts[0].end);
  EXPECT_EQ(attempts[0].end->verdict, "done");
  EXPECT_TRUE(is_superseded(shard_.path(), 1));
  EXPECT_FALSE(is_superseded(shard_.path(), 2));
}

TEST_F(Attempts, TheSchedulersWordFreesAShard) {
  ASSERT_TRUE(claim("7").folder);
  std::string asked;
  const Claimed second = claim("8", 0, [&asked](const AttemptClaim& holder) {
    asked = holder.start.job;
    return true;
  });
  EXPECT_EQ(asked, "7");
  EXPECT_TRUE(second.folder);
}

TEST_F(Attempts, AHalfWrittenClaimIsAnEmptyOneAndNotTakenOver) {
  for (const std::string text : {"", "{\"job\":\"7\",\"rest", "[]", "{\"job\":7,\"pid\":\"x\"}"}) {
    put_file(shard_ / "attempts/0001/claim.json", text);
    const auto attempts = read_attempts(shard_.path());
    ASSERT_EQ(attempts.size(), 1U);
    EXPECT_EQ(attempts[0].claim.start.job, "");
    EXPECT_FALSE(claim("7", 1).folder) << text;
  }
  EXPECT_TRUE(claim("8", 0, all_are_over).folder);
}

TEST_F(Attempts, AHalfWrittenEndIsNone) {
  const Claimed mine = claim("7");
  put_file(*mine.folder / "end.json", "{\"verdict\":\"do");
  EXPECT_FALSE(read_attempts(shard_.path())[0].end);
  EXPECT_FALSE(claim("8").folder);
}

TEST_F(Attempts, WhatIsNoAttemptIsLeftOut) {
  ASSERT_TRUE(claim("7").folder);
  put_file(shard_ / "attempts/.prepared-abc/claim.json", "{}");
  put_file(shard_ / "attempts/notes/x", "");
  EXPECT_EQ(read_attempts(shard_.path()).size(), 1U);
}

TEST_F(Attempts, ProgressIsReadWhileItGoesOn) {
  const Claimed mine = claim("7");
  write_progress(*mine.folder, {3, "measure", 5, 20, 1234});
  auto attempts = read_attempts(shard_.path());
  ASSERT_TRUE(attempts[0].progress);
  EXPECT_EQ(attempts[0].progress->case_index, 3);
  EXPECT_EQ(attempts[0].progress->steps, 20);
  write_end(*mine.folder, {"done", "", 2000});
  EXPECT_FALSE(read_attempts(shard_.path())[0].progress);
}

TEST_F(Attempts, NumbersGoOnBeyondFourDigits) {
  put_file(shard_ / "attempts/9999/claim.json", "{}");
  put_file(shard_ / "attempts/9999/end.json", "{\"verdict\":\"more\"}");
  EXPECT_EQ(claim("7").number, 10000);
  EXPECT_EQ(read_attempts(shard_.path()).back().number, 10000);
}

}  // namespace
}  // namespace assay::host::shard
