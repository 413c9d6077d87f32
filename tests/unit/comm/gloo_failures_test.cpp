// What the other ranks see when one is killed, silent, or never comes. Ranks are processes here, as in a run.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <numeric>

#include "gloo_ranks.hpp"

namespace assay::test {
namespace {

using comm::Reduction;
using compute::DType;
using compute::Tensor;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t long_timeout_ms = 60000;  // what a test must not have to wait for

struct Outcome {
  bool finished = false;  // its body and its destructors
  assay_status status = ASSAY_OK;
  bool throws_again = false;
  double waited_ms = 0;  // in the call that threw
  char text[512] = "";
};

// Forks a process for each rank. Those of a rank that the test lets hang are killed at the end.
class Processes {
 public:
  using Body = std::function<void(comm::Communicator&, const assay_comm&)>;

  Processes(SharedComm& shared, std::int32_t ranks, const Body& body) : ranks_(ranks) {
    const std::size_t bytes = sizeof(Outcome) * static_cast<std::size_t>(ranks);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    outcomes_ = new (memory) Outcome[static_cast<std::size_t>(ranks)]();
    for (std::int32_t r = 0; r < ranks; ++r) {
      const pid_t child = fork();
      if (child == 0) {
        live(shared.table(r), body, outcomes_[r]);
        _exit(0);
      }
      children_.push_back(child);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (std::int32_t r = 0; r < ranks_; ++r) end(r);
    munmap(outcomes_, sizeof(Outcome) * static_cast<std::size_t>(ranks_));
  }

  // Waits for the process to end by itself; false, and it is killed, when it does not within half the long timeout.
  bool ends(std::int32_t rank) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(long_timeout_ms / 2);
    while (waitpid(children_[static_cast<std::size_t>(rank)], nullptr, WNOHANG) == 0) {
      if (Clock::now() > deadline) {
        end(rank);
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    children_[static_cast<std::size_t>(rank)] = 0;
    return true;
  }
  const Outcome& outcome(std::int32_t rank) const { return outcomes_[rank]; }

 private:
  static void live(const assay_comm& table, const Body& body, Outcome& out) {
    auto begin = Clock::now();
    try {
      const auto communicator = open_test_gloo(table);
      try {
        begin = Clock::now();
        body(*communicator, table);
      } catch (const Error& e) {
        note(e, begin, out);
        try {
          communicator->synchronize();
        } catch (const Error& again) {
          out.throws_again = std::string(again.what()) == e.what();
        }
      }
    } catch (const Error& e) {
      note(e, begin, out);
    }
    out.finished = true;
  }
  static void note(const Error& e, Clock::time_point begin, Outcome& out) {
    out.status = e.status();
    out.waited_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    std::strncpy(out.text, e.what(), sizeof out.text - 1);
  }
  void end(std::int32_t rank) {
    pid_t& child = children_[static_cast<std::size_t>(rank)];
    if (child == 0) return;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    child = 0;
  }

  std::int32_t ranks_;
  Outcome* outcomes_ = nullptr;
  std::vector<pid_t> children_;
};

// All-reduces without end: each rank can fail in one, or at its beginning.
void reduce_forever(comm::Communicator& c, std::size_t n, int rounds_until, const std::function<void()>& then) {
  std::vector<float> x(n, 1.0F);
  const Tensor t(x.data(), DType::f32, {static_cast<std::int64_t>(n)});
  for (int round = 0;; ++round) {
    if (round == rounds_until) then();
    c.wait(c.all_reduce(t, t, Reduction::average));
  }
}

void expect_lost(const Outcome& o, const std::string& collective) {
  EXPECT_TRUE(o.finished);
  EXPECT_EQ(o.status, ASSAY_COMM_ERROR);
  EXPECT_NE(std::string(o.text).find(collective), std::string::npos) << o.text;
  EXPECT_TRUE(o.throws_again) << o.text;
}

class KilledRank : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Elements, KilledRank, testing::Values(1, 100000, 4000000));

TEST_P(KilledRank, EndsTheOthersAtOnce) {
  SharedComm shared(3, long_timeout_ms);
  Processes ranks(shared, 3, [](comm::Communicator& c, const assay_comm&) {
    // Killed beside a collective that is running, at a point that differs from run to run.
    std::thread killer;
    reduce_forever(c, GetParam(), 5, [&] {
      if (c.rank() == 2) killer = std::thread([] { kill(getpid(), SIGKILL); });
    });
  });
  EXPECT_TRUE(ranks.ends(2));
  bool named = false;
  for (const std::int32_t r : {0, 1}) {
    ASSERT_TRUE(ranks.ends(r)) << "rank " << r << " waits for one that was killed";
    expect_lost(ranks.outcome(r), "all_reduce of " + std::to_string(GetParam()) + " fp32");
    named = named || std::string(ranks.outcome(r).text).find("rank 2 is lost") != std::string::npos;
    RecordProperty("waited_ms_" + std::to_string(r), std::to_string(ranks.outcome(r).waited_ms));
  }
  EXPECT_TRUE(named) << ranks.outcome(0).text << " / " << ranks.outcome(1).text;
}

TEST(KilledRank, WhileOthersWaitInABroadcast) {
  SharedComm shared(3, long_timeout_ms);
  Processes ranks(shared, 3, [](comm::Communicator& c, const assay_comm&) {
    if (c.rank() == 0) kill(getpid(), SIGKILL);
    std::vector<float> x(1000000);
    c.wait(c.broadcast(Tensor(x.data(), DType::f32, {1000000}), 0));
  });
  for (const std::int32_t r : {1, 2}) {
    ASSERT_TRUE(ranks.ends(r));
    expect_lost(ranks.outcome(r), "broadcast of 1000000 fp32");
  }
}

TEST(SilentRank, IsNamedWhenTheTimeoutHasPassed) {
  SharedComm shared(2, 500);
  Processes ranks(shared, 2, [](comm::Communicator& c, const assay_comm&) {
    reduce_forever(c, 50000, 3, [&] {
      if (c.rank() == 1) raise(SIGSTOP);
    });
  });
  ASSERT_TRUE(ranks.ends(0));
  expect_lost(ranks.outcome(0), "all_reduce of 50000 fp32");
  EXPECT_NE(std::string(ranks.outcome(0).text).find("rank 1 did not answer within 500 ms"), std::string::npos)
      << ranks.outcome(0).text;
}

TEST(AbortedCase, EndsAWaitLongBeforeTheTimeout) {
  SharedComm shared(2, long_timeout_ms);
  Processes ranks(shared, 2, [](comm::Communicator& c, const assay_comm&) {
    reduce_forever(c, 50000, 3, [&] {
      if (c.rank() == 1) raise(SIGSTOP);
    });
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // into the wait
  shared.set_aborted();
  ASSERT_TRUE(ranks.ends(0));
  expect_lost(ranks.outcome(0), "the case is being ended");
}

TEST(MissingRank, IsReportedByTheHost) {
  SharedComm shared(3, 300);
  Processes ranks(shared, 2, [](comm::Communicator&, const assay_comm&) {});
  for (const std::int32_t r : {0, 1}) {
    ASSERT_TRUE(ranks.ends(r));
    EXPECT_EQ(ranks.outcome(r).status, ASSAY_COMM_ERROR);
    EXPECT_STREQ(ranks.outcome(r).text, "");  // the host has the text
  }
}

TEST(Destructor, GivesUpWhatHasNotEnded) {
  SharedComm shared(2, long_timeout_ms);
  Processes ranks(shared, 2, [](comm::Communicator& c, const assay_comm&) {
    static std::vector<float> x(100000);
    if (c.rank() == 1) raise(SIGSTOP);
    c.all_reduce(Tensor(x.data(), DType::f32, {100000}), Tensor(x.data(), DType::f32, {100000}), Reduction::sum);
  });
  ASSERT_TRUE(ranks.ends(0));
  EXPECT_TRUE(ranks.outcome(0).finished);
  EXPECT_EQ(ranks.outcome(0).status, ASSAY_OK) << ranks.outcome(0).text;
}

TEST(Destructor, WaitsUntilTheOthersHaveTheirResults) {
  // Who leaves at once after its last collective takes nothing away from a slower rank.
  SharedComm shared(4, long_timeout_ms);
  Processes ranks(shared, 4, [](comm::Communicator& c, const assay_comm&) {
    std::vector<float> x(300000, static_cast<float>(c.rank()));
    const Tensor t(x.data(), DType::f32, {300000});
    c.wait(c.broadcast(t, 0));
    if (x.back() != 0.0F) throw Error(ASSAY_WRONG_RESULT, "wrong");
  });
  for (const std::int32_t r : {0, 1, 2, 3}) {
    ASSERT_TRUE(ranks.ends(r));
    EXPECT_TRUE(ranks.outcome(r).finished);
    EXPECT_EQ(ranks.outcome(r).status, ASSAY_OK) << ranks.outcome(r).text;
  }
}

}  // namespace
}  // namespace assay::test
