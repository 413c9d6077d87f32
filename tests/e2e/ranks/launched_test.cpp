// Processes of the host that something else has started, and what the others do when one of them is missing, refused,
// killed or interrupted.
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "ranks_sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

class Launched : public RanksSandbox {
 protected:
  // Two ranks, for as long as the ports of this machine are those of the test.
  Launch two_ranks(const ExperimentText& text, std::vector<std::string> more = {}) {
    write_experiment(text);
    HeldPort port;
    return Launch(*this, run_arguments(std::move(more)), 2, port.number());
  }
  // Three cases, each of which rests in a step until somebody ends it.
  static ExperimentText resting() {
    return {.plugin = "faulty_rank",
            .params = "fault = \"sleep\"\nfault_rank = 0",
            .measure = "warmup = 1\nsteps = 3\ntimeout = \"100s\"",
            .sweep = "fault_step = [2, 3, 1]"};
  }
  bool wait_for_rest() const {
    return wait_until([&] {
      const auto folders = run_folders();
      return !folders.empty() && contains(text_of(folders.back() / "logs/case-0001.rank0.log"), "sleep in forward");
    });
  }
};

TEST_F(Launched, MakesTheRowsOfARunAloneInOneFolder) {
  const ExperimentText text{.plugin = "faulty_rank", .sweep = "elements = [0, 1000]"};
  Launch launch = two_ranks(text);
  launch.start_all();
  EXPECT_EQ(launch.wait(0).code, 0) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 0) << launch.output(1);
  EXPECT_EQ(launch.output(1), "") << "rank 0 alone speaks";
  EXPECT_EQ(run_folders().size(), 1u);
  const auto records = cases();
  ASSERT_EQ(records.size(), 2u) << launch.output(0);
  for (const json& record : records) {
    EXPECT_EQ(record["status"], "ok") << record.dump(2);
    EXPECT_EQ(record["ranks"], 2) << record.dump(2);
  }
}

TEST_F(Launched, AFaultIsTheSameRowAndTheNextCaseRuns) {
  Launch launch = two_ranks({.plugin = "faulty_rank",
                             .params = "fault = \"kill\"",
                             .measure = "warmup = 0\nsteps = 3\ntimeout = \"60s\"",
                             .sweep = "fault_rank = [1, 0, 9]"});
  launch.start_all();
  EXPECT_EQ(launch.wait(0).code, 1) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 1) << launch.output(1);
  const auto records = cases();
  ASSERT_EQ(records.size(), 3u) << launch.output(0) << launch.output(1);
  for (const int i : {0, 1}) {
    const json& record = records[static_cast<std::size_t>(i)];
    SCOPED_TRACE(record.dump(2));
    EXPECT_EQ(record["status"], "crashed");
    EXPECT_EQ(record["rank"], 1 - i);
    EXPECT_EQ(record["phase"], "forward");
    EXPECT_EQ(record["step"], 1);
    EXPECT_PRED2(contains, record.value("reason", ""), "killed by SIGKILL");
    EXPECT_EQ(rank_of(record, i)["status"], "failed");
  }
  EXPECT_EQ(records[2]["status"], "ok") << records[2].dump(2);
}

TEST_F(Launched, FewerRanksThanWereStartedLeaveTheOthersIdle) {
  Launch launch = two_ranks({.plugin = "faulty_rank", .sweep = "\"run.ranks\" = [1, 2, 3]"});
  launch.start_all();
  // A launcher would take another code for a crash: the third case is unsupported, and no more than that.
  EXPECT_EQ(launch.wait(0).code, 0) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 0) << launch.output(1);
  const auto records = cases();
  ASSERT_EQ(records.size(), 3u) << launch.output(0);
  for (const std::size_t i : {0u, 1u}) {
    EXPECT_EQ(records[i]["status"], "ok") << records[i].dump(2);
    EXPECT_EQ(records[i]["ranks"], i + 1);
  }
  EXPECT_EQ(records[2]["status"], "unsupported");
  EXPECT_PRED2(contains, records[2].value("reason", ""), "3 ranks were asked for, but ASSAY_RANKS names 2");
}

const ExperimentText impatient{.plugin = "faulty_rank", .run = "wireup_timeout = \"2s\""};

TEST_F(Launched, ARankThatNeverStartsIsNamed) {
  Launch launch = two_ranks(impatient);
  launch.start(0);
  EXPECT_EQ(launch.wait(0).code, 1);
  EXPECT_PRED2(contains, launch.output(0),
               "the 2 processes that ASSAY_RANKS names did not all find one another: rank 1 of 2 did not come within "
               "2 s ([run] wireup_timeout). Start a process for each rank, or unset ASSAY_RANK and ASSAY_RANKS");
  EXPECT_TRUE(run_folders().empty()) << "a run was begun";
}

TEST_F(Launched, WithoutRank0TheOthersSayWhereTheyLooked) {
  Launch launch = two_ranks(impatient);
  launch.start(1);
  EXPECT_EQ(launch.wait(1).code, 1);
  EXPECT_PRED2(contains, launch.output(1),
               "rank 1 of 2 (by ASSAY_RANK) looked for rank 0 at ASSAY_RENDEZVOUS 127.0.0.1:");
  EXPECT_PRED2(contains, launch.output(1), "Connection refused");
  EXPECT_FALSE(contains(launch.output(1), "rank 1 of 2: rank 1")) << launch.output(1);
}

TEST_F(Launched, AWrongTokenIsRefused) {
  Launch launch = two_ranks(impatient);
  launch.set(0, "ASSAY_RENDEZVOUS_TOKEN", "00112233445566778899aabbccddeeff");
  launch.set(1, "ASSAY_RENDEZVOUS_TOKEN", "ffeeddccbbaa99887766554433221100");
  launch.start_all();
  EXPECT_EQ(launch.wait(0).code, 1);
  EXPECT_EQ(launch.wait(1).code, 1);
  EXPECT_PRED2(contains, launch.output(1), "wrong token");
  EXPECT_PRED2(contains, launch.output(0), "rank 1 of 2 did not come within 2 s");
  EXPECT_PRED2(contains, launch.output(0), "with a wrong token");
}

TEST_F(Launched, WithoutATokenOneIsMadeAndLeftInAPrivateFile) {
  Launch launch = two_ranks({.plugin = "faulty_rank"});
  launch.give_no_token();
  launch.start_all();
  EXPECT_EQ(launch.wait(0).code, 0) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 0) << launch.output(1);
}

TEST_F(Launched, AWeakTokenIsRefusedByEveryRank) {
  Launch launch = two_ranks(impatient);
  for (const int rank : {0, 1}) launch.set(rank, "ASSAY_RENDEZVOUS_TOKEN", "our benchmark");
  launch.start_all();
  for (const int rank : {0, 1}) {
    EXPECT_NE(launch.wait(rank).code, 0);
    EXPECT_PRED2(contains, launch.output(rank), "ASSAY_RENDEZVOUS_TOKEN has 13 characters");
    EXPECT_FALSE(contains(launch.output(rank), "our benchmark"));
  }
  EXPECT_TRUE(run_folders().empty()) << "a run was begun";
}

TEST_F(Launched, APortThatIsTakenIsNamed) {
  write_experiment(impatient);
  const HeldPort port;
  Launch launch(*this, run_arguments(), 2, port.number());
  launch.start_all();
  EXPECT_EQ(launch.wait(0).code, 1);
  EXPECT_PRED2(contains, launch.output(0), "port " + std::to_string(port.number()) + " is taken");
  EXPECT_EQ(launch.wait(1).code, 1);
  EXPECT_PRED2(contains, launch.output(1), "looked for rank 0 at ASSAY_RENDEZVOUS");
}

TEST_F(Launched, AKilledFollowerEndsTheCaseAndIsNamed) {
  Launch launch = two_ranks(resting());
  launch.start_all();
  ASSERT_TRUE(wait_for_rest()) << launch.output(0);
  launch.send(1, SIGKILL);
  EXPECT_EQ(launch.wait(1).signal, SIGKILL);
  EXPECT_EQ(launch.wait(0).code, 1) << launch.output(0);
  const auto records = cases();
  ASSERT_EQ(records.size(), 3u) << launch.output(0);
  for (const json& record : records) {
    EXPECT_EQ(record["status"], "crashed") << record.dump(2);
    EXPECT_EQ(record["rank"], 1) << record.dump(2);
    EXPECT_PRED2(contains, record.value("reason", ""), ": its assay process is gone");
  }
}

TEST_F(Launched, TheOthersEndWhenRank0IsKilled) {
  Launch launch = two_ranks(resting());
  launch.start_all();
  ASSERT_TRUE(wait_for_rest()) << launch.output(0);
  launch.send(0, SIGKILL);
  EXPECT_EQ(launch.wait(0).signal, SIGKILL);
  EXPECT_EQ(launch.wait(1).code, 1);
  EXPECT_PRED2(contains, launch.output(1), "rank 1 of 2");
}

TEST_F(Launched, SigintToRank0EndsAllAndKeepsWhatIsFinished) {
  Launch launch = two_ranks({.plugin = "faulty_rank",
                             .params = "step_ms = 50",
                             .measure = "warmup = 1\nsteps = 10\ntimeout = \"100s\"",
                             .sweep = "fault_step = [1, 2, 3, 4, 5, 6, 7, 8]"});
  launch.start_all();
  ASSERT_TRUE(wait_until([&] { return case_lines().size() >= 2; })) << launch.output(0);
  launch.send(0, SIGINT);
  EXPECT_EQ(launch.wait(0).code, 130) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 130) << launch.output(1);
  const auto records = cases();
  ASSERT_GE(records.size(), 2u);
  ASSERT_LT(records.size(), 8u);
  for (const json& record : records) EXPECT_EQ(record["status"], "ok") << record.dump(2);

  Launch resumed(*this, run_arguments({"--resume"}), 2, HeldPort().number());
  resumed.start_all();
  EXPECT_EQ(resumed.wait(0).code, 0) << resumed.output(0);
  EXPECT_EQ(resumed.wait(1).code, 0) << resumed.output(1);
  EXPECT_EQ(run_folders().size(), 1u);
  EXPECT_EQ(cases().size(), 8u);
}

// Nobody has come yet, and nobody will for a long time.
const ExperimentText patient{.plugin = "faulty_rank", .run = "wireup_timeout = \"1h\""};

TEST_F(Launched, SigintEndsALeaderThatWaitsForTheOthers) {
  Launch launch = two_ranks(patient);
  launch.give_no_token();
  launch.start(0);
  // It is waiting, or about to, once the others can find it.
  ASSERT_TRUE(wait_until([&] {
    std::error_code error;
    for (std::filesystem::directory_iterator i(folder() / "out", error), end; !error && i != end; i.increment(error))
      if (i->path().filename().string().starts_with(".rendezvous-")) return true;
    return false;
  })) << launch.output(0);
  launch.send(0, SIGINT);
  EXPECT_EQ(launch.wait(0).code, 130) << launch.output(0);
  EXPECT_PRED2(contains, launch.output(0), "interrupted while the ranks of the launch were waiting for one another");
  EXPECT_TRUE(run_folders().empty()) << "a run was begun";
}

TEST_F(Launched, SigintEndsAFollowerThatLooksForTheLeader) {
  write_experiment(patient);
  for (const bool is_answered : {true, false}) {
    HeldPort port;
    Launch launch(*this, run_arguments(), 2, port.number());
    launch.start(1);
    // Connected to somebody silent, or between two attempts at a port that is closed again.
    const int connection = port.accept_one();
    ASSERT_GE(connection, 0) << launch.output(1);
    if (!is_answered) {
      close(connection);
      port.release();
    }
    launch.send(1, SIGINT);
    EXPECT_EQ(launch.wait(1).code, 130) << launch.output(1);
    EXPECT_EQ(launch.output(1), "");
    if (is_answered) close(connection);
  }
}

// It comes back when the case is long over for the others: it must not carry out an order that it finds then.
TEST_F(Launched, AFollowerThatFallsSilentTakesNoPartAnyLonger) {
  Launch launch = two_ranks({.plugin = "faulty_rank",
                             .params = "step_ms = 1000",
                             .measure = "warmup = 1\nsteps = 3\ntimeout = \"6s\"",
                             .sweep = "fault_step = [2, 3, 1]"});
  launch.start_all();
  ASSERT_TRUE(wait_until([&] {
    return !run_folders().empty() &&
           contains(text_of(run_folders().back() / "logs/case-0001.rank1.log"), "rank 1: a step begins");
  })) << launch.output(0);
  launch.send(1, SIGSTOP);  // its worker goes on
  ASSERT_TRUE(wait_until([&] { return !case_lines().empty(); })) << launch.output(0);
  launch.send(1, SIGCONT);
  EXPECT_EQ(launch.wait(1).code, 1) << launch.output(1);
  EXPECT_EQ(launch.wait(0).code, 1) << launch.output(0);
  const auto records = cases();
  ASSERT_EQ(records.size(), 3u) << launch.output(0);
  EXPECT_EQ(records[0]["status"], "timeout") << records[0].dump(2);
  EXPECT_PRED2(contains, records[0].value("reason", ""), "its assay process has not reported the end of the case");
  for (const std::size_t i : {1u, 2u}) {
    EXPECT_EQ(records[i]["status"], "crashed") << records[i].dump(2);
    EXPECT_EQ(records[i]["rank"], 1);
    EXPECT_PRED2(contains, records[i].value("reason", ""), "it had not reported the end of an earlier case");
    EXPECT_FALSE(
        std::filesystem::exists(run_folders().back() / "logs" / ("case-000" + std::to_string(i + 1) + ".rank1.log")))
        << "it has taken part";
  }
}

}  // namespace
}  // namespace assay::test
