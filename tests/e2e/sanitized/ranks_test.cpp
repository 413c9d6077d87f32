// Two ranks, started by the host or each as its own host; one that fails, and a run that is resumed.
#include <signal.h>

#include "e2e/ranks/ranks_sandbox.hpp"

namespace assay::test {
namespace {

// A step with a collective where there is a communicator, and without one elsewhere.
#ifdef HAVE_GLOO
constexpr const char* elements = "elements = 64\n";
#else
constexpr const char* elements = "elements = 0\n";
#endif

class SanitizedRanks : public RanksSandbox {
 protected:
  static ExperimentText step(const std::string& params = "", const std::string& run = "",
                             const std::string& sweep = "") {
    return {.plugin = "faulty_rank", .params = elements + params, .run = run, .sweep = sweep};
  }
};

TEST_F(SanitizedRanks, OneAndTwo) {
  const auto records = records_of(step("", "", "\"run.ranks\" = [1, 2]"));
  ASSERT_EQ(records.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(records[i]["status"], "ok") << records[i].dump(2);
    EXPECT_EQ(records[i]["ranks"], i + 1);
  }
}

TEST_F(SanitizedRanks, OneThatFailsIsARowAndTheNextCaseRuns) {
  const auto records = records_of(step("", "ranks = 2", "fault = [\"segfault\", \"throw\"]\nfault_rank = [1, 9]"), 1);
  ASSERT_EQ(records.size(), 4u) << output();
  EXPECT_EQ(records[0]["status"], "crashed") << records[0].dump(2);
  EXPECT_EQ(records[0]["rank"], 1);
  EXPECT_EQ(records[1]["status"], "ok") << records[1].dump(2);
  EXPECT_EQ(records[2]["status"], "failed") << records[2].dump(2);
  EXPECT_EQ(records[3]["status"], "ok") << records[3].dump(2);

  EXPECT_EQ(run(run_arguments({"--resume"})).exit.code, 1) << output();
  EXPECT_EQ(cases().size(), 6u) << "the two that failed are run again";
}

TEST_F(SanitizedRanks, ARankThatSleepsIsATimeout) {
  ExperimentText text = step("fault = \"sleep\"", "ranks = 2");
  text.measure = "warmup = 1\nsteps = 3\ntimeout = \"4s\"";
  const auto records = records_of(text, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "timeout") << records[0].dump(2);
  EXPECT_EQ(records[0]["rank"], 1);
}

TEST_F(SanitizedRanks, TwoHostsAreOneRun) {
  write_experiment(step("fault = \"kill\"", "", "fault_rank = [9, 1]"));
  HeldPort port;
  Launch launch(*this, run_arguments(), 2, port.number());
  port.release();
  launch.start_all();
  EXPECT_EQ(launch.wait(0).code, 1) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 1) << launch.output(1);
  const auto records = cases();
  ASSERT_EQ(records.size(), 2u) << launch.output(0) << launch.output(1);
  EXPECT_EQ(records[0]["status"], "ok") << records[0].dump(2);
  EXPECT_EQ(records[1]["status"], "crashed") << records[1].dump(2);
  EXPECT_EQ(records[1]["rank"], 1);
}

TEST_F(SanitizedRanks, TwoHostsAreInterruptedTogether) {
  ExperimentText text = step("step_ms = 50", "", "fault_step = [1, 2, 3, 4, 5, 6]");
  text.measure = "warmup = 1\nsteps = 4\ntimeout = \"100s\"";
  write_experiment(text);
  HeldPort port;
  Launch launch(*this, run_arguments(), 2, port.number());
  port.release();
  launch.start_all();
  ASSERT_TRUE(wait_until([&] { return case_lines().size() >= 1; })) << launch.output(0);
  launch.send(0, SIGINT);
  EXPECT_EQ(launch.wait(0).code, 130) << launch.output(0);
  EXPECT_EQ(launch.wait(1).code, 130) << launch.output(1);
  EXPECT_LT(cases().size(), 6u);
}

}  // namespace
}  // namespace assay::test
