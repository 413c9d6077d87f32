// Jobs beside their caller: how many at a time, in which order errors come, and what becomes of those that nobody waits
// for. No times: a job waits for what another one does.
#include "common/parallel_jobs.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using assay::compute::ParallelJobs;
using assay::compute::PostponedCalls;

TEST(ParallelJobs, AsManyRunAtOnceAsThereAreThreads) {
  ParallelJobs jobs(3);
  std::barrier<> all_there(3);
  std::vector<std::future<std::size_t>> threads;
  for (int i = 0; i < 3; ++i)
    threads.push_back(jobs.start([&](std::size_t thread) {
      all_there.arrive_and_wait();  // never returns where fewer than three run
      return thread;
    }));
  std::set<std::size_t> numbers;
  for (auto& thread : threads) numbers.insert(thread.get());
  EXPECT_EQ(numbers, (std::set<std::size_t>{0, 1, 2}));
}

TEST(ParallelJobs, NoMoreRunAtOnceAndNoTwoHaveOneNumber) {
  constexpr int most = 2;
  ParallelJobs jobs(most);
  std::atomic<int> running = 0, too_many = 0, shared_number = 0;
  std::array<std::atomic<bool>, most> taken{};
  std::vector<std::future<void>> done;
  for (int i = 0; i < 200; ++i)
    done.push_back(jobs.start([&](std::size_t thread) {
      if (++running > most) ++too_many;
      if (taken.at(thread).exchange(true)) ++shared_number;
      std::this_thread::yield();
      taken.at(thread) = false;
      --running;
    }));
  jobs.wait();
  for (auto& one : done) EXPECT_EQ(one.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(too_many, 0);
  EXPECT_EQ(shared_number, 0);
}

TEST(ParallelJobs, OneThreadTakesThemInOrder) {
  ParallelJobs jobs(1);
  std::vector<int> order;
  for (int i = 0; i < 50; ++i) jobs.start([&order, i](std::size_t) { order.push_back(i); });
  jobs.wait();
  std::vector<int> expected(50);
  for (int i = 0; i < 50; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(order, expected);
}

TEST(ParallelJobs, ErrorsComeInTheOrderOfTheStartsWhateverEndsFirst) {
  ParallelJobs jobs(2);
  std::latch second_has_thrown(1);
  auto first = jobs.start([&](std::size_t) -> int {
    second_has_thrown.wait();
    throw std::runtime_error("first");
  });
  struct Tells {
    std::latch& latch;
    ~Tells() { latch.count_down(); }
  };
  auto second = jobs.start([&](std::size_t) -> int {
    const Tells tells{second_has_thrown};
    throw std::runtime_error("second");
  });
  jobs.wait();
  PostponedCalls calls;
  std::string after;
  calls.add([&] { first.get(); });
  calls.add([&] { second.get(); });
  calls.add([&] { after = "carried out"; });
  try {
    calls.carry_out();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "first");
  }
  EXPECT_TRUE(calls.empty());
  EXPECT_EQ(after, "");
  EXPECT_THROW(second.get(), std::runtime_error);  // still there for who asks
}

TEST(ParallelJobs, TheyGoOnAfterAWait) {
  ParallelJobs jobs(2);
  jobs.wait();
  auto one = jobs.start([](std::size_t) { return 1; });
  jobs.wait();
  auto two = jobs.start([](std::size_t) { return 2; });
  EXPECT_EQ(one.get() + two.get(), 3);
}

// As where a walk throws meanwhile: nobody asks for the results.
TEST(ParallelJobs, TheEndWaitsForWhatHasBegunAndDropsTheRest) {
  std::latch has_begun(1), may_end(1);
  std::atomic<int> ended = 0;
  std::future<void> begun, dropped;
  std::thread releases;
  {
    ParallelJobs jobs(1);
    begun = jobs.start([&](std::size_t) {
      has_begun.count_down();
      may_end.wait();
      ++ended;
      throw std::runtime_error("nobody hears this");
    });
    dropped = jobs.start([&](std::size_t) { ++ended; });
    has_begun.wait();
    // The job behind it is dropped before the first one may end.
    releases = std::thread([&] {
      dropped.wait();
      may_end.count_down();
    });
  }
  releases.join();
  EXPECT_EQ(ended, 1);
  EXPECT_THROW(begun.get(), std::runtime_error);
  try {
    dropped.get();
    ADD_FAILURE() << "the job behind it has run";
  } catch (const std::future_error& e) {
    EXPECT_EQ(e.code(), std::future_errc::broken_promise);
  }
}

TEST(ParallelJobs, WhatAJobHoldsGoesWithIt) {
  ParallelJobs jobs(1);
  auto held = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = held;
  auto result = jobs.start([held = std::move(held)](std::size_t) { return *held; });
  jobs.wait();
  EXPECT_EQ(result.get(), 7);
  EXPECT_TRUE(watch.expired());
}

TEST(PostponedCalls, EachIsCarriedOutOnceAndInOrder) {
  PostponedCalls calls;
  std::string order;
  for (const char c : {'a', 'b', 'c'}) calls.add([&order, c] { order += c; });
  calls.carry_out();
  calls.carry_out();
  EXPECT_EQ(order, "abc");
}

TEST(UsableProcessors, ThereIsOneAtLeast) { EXPECT_GE(assay::compute::usable_processors(), 1); }

}  // namespace
