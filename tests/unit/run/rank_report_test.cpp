#include "run/rank_report.hpp"

#include <gtest/gtest.h>
#include <signal.h>

namespace assay::host::run::test {
namespace {

using Clock = std::chrono::steady_clock;

worker::CaseSpec spec(std::int32_t rank, std::int32_t count) {
  worker::CaseSpec spec;
  spec.ranks.rank = rank, spec.ranks.count = count;
  if (count > 1) spec.ranks.host_name = "n" + std::to_string(rank);
  return spec;
}

launch::WorkerOutcome worker(launch::WorkerStatus status, std::string reason, std::string result = "") {
  launch::WorkerOutcome outcome;
  outcome.status = status;
  outcome.reason = std::move(reason);
  if (!result.empty()) outcome.events.result = std::move(result);
  return outcome;
}

launch::GroupOutcome group_of(std::vector<launch::WorkerOutcome> workers) {
  launch::GroupOutcome outcome;
  outcome.workers = std::move(workers);
  return outcome;
}

constexpr const char* ok_result = R"({"event":"result","record":{"status":"ok","reason":""}})";
constexpr const char* failed_result =
    R"({"event":"result","record":{"status":"failed","reason":"loss is not finite"}})";

TEST(RankReport, AResultIsTheWorkersOwn) {
  const auto reports =
      reports_of(group_of({worker(launch::WorkerStatus::finished, "", ok_result)}), {spec(0, 1)}, Clock::now());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(is_ok(reports.front()));
  EXPECT_FALSE(reports.front().failure.has_value());
}

TEST(RankReport, WhatTheTakingDownSaidIsAdded) {
  launch::WorkerOutcome outcome = worker(launch::WorkerStatus::finished, "", ok_result);
  outcome.events.others = {R"({"event":"note"})", R"({"event":"teardown","notes":["2 blocks left"],"case_s":7.5})"};
  outcome.end_note = "it died at its exit", outcome.left_note = "it left a process";
  outcome.log_tail = {"last words"};
  const auto reports = reports_of(group_of({outcome}), {spec(0, 1)}, Clock::now());
  EXPECT_TRUE(is_ok(reports.front()));
  EXPECT_EQ(reports.front().result.notes,
            (std::vector<std::string>{"2 blocks left", "it died at its exit", "it left a process"}));
  EXPECT_EQ(reports.front().result.wall.case_s, 7.5);
  EXPECT_EQ(reports.front().result.log_tail, std::vector<std::string>{"last words"});
}

TEST(RankReport, OneThatDiedBeforeItSaidHowItWasTakenDownHasItsResult) {
  const auto reports =
      reports_of(group_of({worker(launch::WorkerStatus::finished, "", ok_result)}), {spec(0, 1)}, Clock::now());
  EXPECT_FALSE(reports.front().result.notes.has_value());
}

TEST(RankReport, NoReasonNamesItsOwnRankUntilTheRecordIsMade) {
  launch::GroupOutcome outcome = group_of({worker(launch::WorkerStatus::crashed, "killed by SIGKILL in stage measure"),
                                           worker(launch::WorkerStatus::finished, "", failed_result)});
  outcome.failure = launch::GroupFailure{launch::FailureKind::killed, 0, "killed by SIGKILL in stage measure",
                                         "rank 0: killed by SIGKILL in stage measure"};
  const auto reports = reports_of(outcome, {spec(0, 2), spec(1, 2)}, Clock::now());
  EXPECT_EQ(named_reason(reports[0]), "rank 0 on n0: killed by SIGKILL in stage measure");
  EXPECT_EQ(named_reason(reports[1]), "rank 1 on n1: loss is not finite");
  EXPECT_EQ(reports[0].failure, launch::FailureKind::killed);
  EXPECT_FALSE(reports[1].failure.has_value());
}

TEST(RankReport, AnOverdueRankIsATimeoutWhateverItSaidLater) {
  launch::GroupOutcome outcome = group_of({worker(launch::WorkerStatus::finished, "", failed_result)});
  outcome.failure =
      launch::GroupFailure{launch::FailureKind::overdue, 0, "no result after 3.0 s", "rank 1: no result after 3.0 s"};
  const auto reports = reports_of(outcome, {spec(1, 2)}, Clock::now());
  EXPECT_FALSE(is_ok(reports.front()));
  EXPECT_EQ(named_reason(reports.front()), "rank 1 on n1: no result after 3.0 s");
}

TEST(RankReport, ARankThatIsAloneAndEndsAtItsDeadlineHasItsResult) {
  launch::GroupOutcome outcome = group_of({worker(launch::WorkerStatus::finished, "", ok_result)});
  outcome.failure =
      launch::GroupFailure{launch::FailureKind::overdue, 0, "no result after 3.0 s", "rank 0: no result after 3.0 s"};
  const auto reports = reports_of(outcome, {spec(0, 1)}, Clock::now());
  EXPECT_TRUE(is_ok(reports.front()));
  EXPECT_FALSE(reports.front().failure.has_value());
}

// A reason may hold any word; who ended the culprit is a field.
TEST(RankReport, TheCulpritAloneMayHaveBeenAskedToEnd) {
  const std::string named_so = R"({"event":"result","record":{"status":"failed","reason":"no SIGTERM handler"}})";
  const std::string asked =
      R"({"event":"result","record":{"status":"failed","reason":"asked to end"},"asked_to_end":true})";
  const auto reports_on = [](const std::vector<launch::WorkerOutcome>& workers, std::size_t culprit) {
    launch::GroupOutcome outcome = group_of(workers);
    outcome.failure = launch::GroupFailure{launch::FailureKind::reported, culprit, "", ""};
    return reports_of(outcome, {spec(0, 2), spec(1, 2)}, Clock::now());
  };
  const auto first = worker(launch::WorkerStatus::finished, "", named_so);
  const auto second = worker(launch::WorkerStatus::finished, "", asked);
  EXPECT_FALSE(is_asked_to_end(reports_on({first, second}, 0)));
  EXPECT_TRUE(is_asked_to_end(reports_on({first, second}, 1)));
  launch::WorkerOutcome killed = worker(launch::WorkerStatus::crashed, "killed by SIGTERM");
  killed.signal = SIGTERM;
  EXPECT_TRUE(is_asked_to_end(reports_on({killed, first}, 0)));
}

TEST(RankReport, TravelsBetweenMachines) {
  const RankReport sent{
      3,   "n3", record::result_without_worker(record::Status::failed, "cannot start"), launch::FailureKind::died, true,
      1.5, true};
  const RankReport arrived = rank_report_from_text(to_text(sent));
  EXPECT_EQ(arrived.rank, 3);
  EXPECT_EQ(named_reason(arrived), "rank 3 on n3: cannot start");
  EXPECT_EQ(arrived.failure, launch::FailureKind::died);
  EXPECT_TRUE(arrived.waited);
  EXPECT_EQ(arrived.last_sign_s, 1.5);
  EXPECT_TRUE(arrived.asked_to_end);
  EXPECT_FALSE(rank_report_from_text(to_text({0, "n0", record::result_without_worker(record::Status::ok, "")}))
                   .failure.has_value());
}

TEST(RankReport, AResultIsJudgedByItsStatus) {
  EXPECT_EQ(judge_result(ok_result).kind, launch::ResultVerdict::Kind::ok);
  EXPECT_EQ(judge_result(failed_result).kind, launch::ResultVerdict::Kind::failed);
  EXPECT_EQ(judge_result(failed_result).reason, "loss is not finite");
  EXPECT_EQ(
      judge_result(R"({"event":"result","record":{"status":"failed","reason":"lost"},"of_another_rank":true})").kind,
      launch::ResultVerdict::Kind::victim);
}

}  // namespace
}  // namespace assay::host::run::test
