// One of two ranks misbehaves: the case is a row that says who, where and why, the next case runs, nothing is left.
#include <cstdio>
#include <ostream>

#include "ranks_sandbox.hpp"

namespace assay::test {
namespace {

using nlohmann::json;

const char* const all_places = R"(place = ["create", "setup", "forward", "collective", "verify"])";

struct Place {
  const char* stage;
  const char* phase;
};
// Where a fault of this name happens: in the second measured step, where there is no warm-up.
const std::map<std::string, Place> places{{"create", {"create", ""}},
                                          {"setup", {"setup", ""}},
                                          {"forward", {"measure", "forward"}},
                                          {"collective", {"measure", "collective"}},
                                          {"verify", {"verify", ""}}};

std::string params_with(const std::string& fault) { return "elements = 1000\nfault = \"" + fault + "\""; }

// For the figures of a report; no test depends on them.
void print_time(const json& record) {
  std::printf("%s: %s after %.2f s\n", record["axes"].dump().c_str(), record.value("status", "").c_str(),
              record.contains("wall_s") ? record["wall_s"].value("case", 0.0) : 0.0);
}

void expect_place(const json& record, int rank, const Place& place) {
  EXPECT_EQ(record["rank"], rank);
  EXPECT_EQ(record["stage"], place.stage);
  EXPECT_EQ(record["phase"], place.phase);
  if (*place.phase) {
    EXPECT_EQ(record["step"], 1);
  }
  EXPECT_FALSE(record.contains("phases")) << "a case that failed has no times";
  EXPECT_PRED2(contains, record.value("log_tail", json::array()).dump(), "rank " + std::to_string(rank) + ": ");
  const json own = rank_of(record, rank);
  EXPECT_EQ(own["status"], record["status"]);
  EXPECT_EQ(own["stage"], place.stage);
  EXPECT_FALSE(own.value("host", "").empty());
  EXPECT_PRED2(contains, record.value("reason", ""),
               "rank " + std::to_string(rank) + " on " + own.value("host", "?") + ": ");
  // In verify the other rank may have come through.
  const json other = rank_of(record, 1 - rank);
  EXPECT_TRUE(other["status"] == "failed" || other["status"] == "ok") << other.dump(2);
  if (other["status"] == "failed") {
    EXPECT_NE(other.value("reason", ""), "");
  }
}

struct Fault {
  const char* name;
  const char* status;
  const char* reason;  // a part of it
};
void PrintTo(const Fault& f, std::ostream* out) { *out << f.name; }

class Dying : public RanksSandbox, public testing::WithParamInterface<Fault> {};

TEST_P(Dying, IsARowWithRankAndPlaceAndTheNextCaseRuns) {
  const Fault& fault = GetParam();
  // Rank 9 is nobody: those cases are well, each behind one that is not.
  const RunResult result = run_experiment({.plugin = "faulty_rank",
                                           .params = params_with(fault.name),
                                           .measure = "warmup = 0\nsteps = 3\ntimeout = \"60s\"",
                                           .run = "ranks = 2",
                                           .sweep = std::string(all_places) + "\nfault_rank = [0, 9, 1]"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 15u) << result.output;
  for (const json& record : records) {
    SCOPED_TRACE(record.dump(2));
    EXPECT_EQ(record["ranks"], 2);
    const int rank = record["axes"]["fault_rank"];
    if (rank == 9) {
      EXPECT_EQ(record["status"], "ok");
      EXPECT_TRUE(record.contains("phases"));
      continue;
    }
    print_time(record);
    EXPECT_EQ(record["status"], fault.status);
    EXPECT_PRED2(contains, record.value("reason", ""), fault.reason);
    expect_place(record, rank, places.at(record["axes"]["place"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Dying,
                         testing::Values(Fault{"kill", "crashed", "killed by SIGKILL (killed from outside)"},
                                         Fault{"segfault", "crashed", "killed by SIGSEGV (invalid memory access)"},
                                         Fault{"exit", "crashed", "exited with code 3 before it reported a result"},
                                         Fault{"throw", "failed", "boom in "},
                                         Fault{"wrong", "wrong_result", "one element is off"}),
                         [](const auto& info) { return std::string(info.param.name); });

// SIGTERM is how the host ends a rank; from anybody else it is named.
TEST_F(RanksSandbox, ARankThatSomebodyTerminatesNamesTheSender) {
  const RunResult result = run_experiment({.plugin = "faulty_rank",
                                           .params = params_with("terminate"),
                                           .measure = "warmup = 0\nsteps = 3\ntimeout = \"60s\"",
                                           .run = "ranks = 2",
                                           .sweep = "place = [\"forward\", \"collective\"]\nfault_rank = [0, 9, 1]"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 6u) << result.output;
  for (const json& record : records) {
    SCOPED_TRACE(record.dump(2));
    const int rank = record["axes"]["fault_rank"];
    EXPECT_EQ(record["status"], rank == 9 ? "ok" : "crashed");
    if (rank == 9) continue;
    EXPECT_EQ(record["rank"], rank);
    const std::string from_outside = "asked to end from outside, with SIGTERM by process ";
    const std::string reason = record.value("reason", ""), log = record.value("log_tail", json::array()).dump();
    EXPECT_PRED2(contains, reason, from_outside);
    const int pid =
        std::atoi(reason.c_str() + std::min(reason.size(), reason.find(from_outside) + from_outside.size()));
    EXPECT_PRED2(contains, log, "rank " + std::to_string(rank) + ": terminate by " + std::to_string(pid));
    // The other one is ended by the host.
    EXPECT_FALSE(contains(rank_of(record, 1 - rank).value("reason", ""), "SIGTERM"));
  }
}

class Sleeping : public RanksSandbox {
 protected:
  void expect_timeouts(const RunResult& result, std::size_t count, const std::string& reason) const {
    EXPECT_EQ(result.exit.code, 1) << result.output;
    const auto records = cases();
    ASSERT_EQ(records.size(), count) << result.output;
    for (const json& record : records) {
      SCOPED_TRACE(record.dump(2));
      if (record["axes"]["fault_rank"] == 9) {
        EXPECT_EQ(record["status"], "ok");
        continue;
      }
      print_time(record);
      EXPECT_EQ(record["status"], "timeout");
      EXPECT_PRED2(contains, record.value("reason", ""), reason);
      expect_place(record, 1, places.at(record["axes"]["place"]));
    }
  }
};

// All of them leave when they are asked to, and say so in a result.
TEST_F(RanksSandbox, HealthyRanksThatTakeTooLongAreATimeout) {
  run_experiment({.plugin = "faulty_rank",
                  .params = "elements = 1000\nstep_ms = 100",
                  .measure = "warmup = 0\nsteps = 1000\ntimeout = \"2s\"",
                  .run = "ranks = 2"});
  const auto records = cases();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["status"], "timeout") << records[0].dump(2);
  EXPECT_PRED2(contains, records[0].value("reason", ""), "[measure] timeout");
}

TEST_F(RanksSandbox, AnInterruptedCaseHasNoRecord) {
  write_experiment({.plugin = "faulty_rank",
                    .params = "elements = 1000\nstep_ms = 100",
                    .measure = "warmup = 0\nsteps = 1000\ntimeout = \"60s\"",
                    .run = "ranks = 2"});
  std::size_t runs = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    HostProcess host = start(run_arguments());
    ++runs;
    ASSERT_TRUE(wait_until([&] {
      return run_folders().size() == runs &&
             contains(text_of(run_folders().back() / "logs/case-0001.rank0.log"), "a step begins");
    })) << output();
    host.send(signal);
    const std::optional<HostExit> exit = host.wait();
    ASSERT_TRUE(exit.has_value());
    EXPECT_EQ(exit->code, 130) << output();
    EXPECT_EQ(cases().size(), 0u) << cases().front().dump(2);
  }
}

TEST_F(Sleeping, IsATimeoutAtTheDeadlineOfTheCase) {
  const RunResult result = run_experiment({.plugin = "faulty_rank",
                                           .params = params_with("sleep") + "\nstep_ms = 200",
                                           .measure = "warmup = 0\nsteps = 3\ntimeout = \"4s\"",
                                           .run = "ranks = 2",
                                           .sweep = "place = [\"create\", \"forward\", \"verify\"]\nfault_rank = [1]"});
  expect_timeouts(result, 3, "no result after 4.0 s ([measure] timeout)");
}

// Signs of life do not distinguish the two where both come to the same point at once: the other one waits there, and
// says so.
TEST_F(Sleeping, IsBlamedAlsoWhereAllStoppedAtOnce) {
  const RunResult result = run_experiment({.plugin = "faulty_rank",
                                           .params = params_with("sleep"),
                                           .measure = "warmup = 0\nsteps = 3\ntimeout = \"4s\"",
                                           .run = "ranks = 2",
                                           .sweep = "place = [\"setup\", \"forward\"]\nfault_rank = [0, 1]"});
  EXPECT_EQ(result.exit.code, 1) << result.output;
  const auto records = cases();
  ASSERT_EQ(records.size(), 4u) << result.output;
  for (const json& record : records) {
    SCOPED_TRACE(record.dump(2));
    print_time(record);
    EXPECT_EQ(record["status"], "timeout");
    expect_place(record, record["axes"]["fault_rank"].get<int>(), places.at(record["axes"]["place"]));
  }
}

TEST_F(Sleeping, IsATimeoutWhenNoRankHasShownASignOfLife) {
  const RunResult result = run_experiment({.plugin = "faulty_rank",
                                           .params = params_with("sleep") + "\nstep_ms = 200",
                                           .measure = "warmup = 0\nsteps = 3\ntimeout = \"100s\"",
                                           .run = "ranks = 2\nstall_timeout = \"2s\"",
                                           .sweep = "place = [\"forward\", \"collective\"]\nfault_rank = [1, 9]"});
  expect_timeouts(result, 4, "no rank has shown a sign of life for 2.0 s ([run] stall_timeout)");
}

}  // namespace
}  // namespace assay::test
