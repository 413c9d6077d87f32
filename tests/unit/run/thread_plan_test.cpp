#include "run/thread_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "telemetry/cgroup.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/processors_left.hpp"

namespace assay::host::run::test {
namespace {

class ThreadPlans : public testing::Test {
 protected:
  ThreadPlans() { unsetenv(threads_variable); }
  ~ThreadPlans() override { unsetenv(threads_variable); }
  static worker::CaseSpec spec(std::int32_t sharers) {
    worker::CaseSpec spec;
    spec.device_kind = "cpu";
    spec.ranks.count = spec.ranks.local_count = spec.ranks.sharer_count = sharers;
    return spec;
  }
  static std::size_t usable() { return telemetry::usable_processors().size(); }
};

TEST_F(ThreadPlans, TheCasesThenTheEnvironmentsThenAShare) {
  worker::CaseSpec asked = spec(2);
  EXPECT_LE(std::stoul(thread_setting(asked)), std::max<std::size_t>(1, usable() / 2)) << "a quota may leave fewer";
  setenv(threads_variable, "9", 1);
  EXPECT_EQ(thread_setting(asked), "9");
  EXPECT_EQ(thread_count(asked).count_from, "OMP_NUM_THREADS=9");
  asked.values.run.threads = 3;
  EXPECT_EQ(thread_setting(asked), "3");
  EXPECT_EQ(thread_count(asked).count_from, "[run] threads");
  setenv(threads_variable, "4,2", 1);
  asked.values.run.threads = 0;
  EXPECT_EQ(thread_setting(asked), "4") << "the outermost of a list";
}

// A neighbour of one second would make another experiment of the run that begins meanwhile.
TEST_F(ThreadPlans, ANeighbourTakesNoThread) {
  const std::int64_t alone = thread_count(spec(1)).count.value();
  std::atomic<bool> ends = false;
  std::vector<std::thread> neighbours;
  for (std::size_t i = 0; i < usable(); ++i)
    neighbours.emplace_back([&ends] {
      while (!ends) {
      }
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const record::Threads beside = thread_count(spec(1));
  ends = true;
  for (std::thread& neighbour : neighbours) neighbour.join();
  EXPECT_EQ(beside.count, alone);
  EXPECT_EQ(beside.taken_processors, std::nullopt);
  const auto quota = telemetry::cgroup_cpu_quota_cores("/");
  EXPECT_EQ(alone, static_cast<std::int64_t>(telemetry::allowed_processors(usable(), quota)));
}

TEST_F(ThreadPlans, RanksThatShareProcessorsDivideThem) {
  const std::int64_t all = thread_count(spec(1)).count.value();
  EXPECT_EQ(thread_count(spec(2)).count, std::max<std::int64_t>(1, all / 2));
  EXPECT_EQ(thread_count(spec(1000)).count, 1);
  EXPECT_NE(thread_count(spec(1000)).count_from.find("shared by 1000 ranks"), std::string::npos);
}

TEST_F(ThreadPlans, WaitingIsBoundedWhereThereIsAnyoneToWaitFor) {
  worker::CaseSpec two = spec(1), one = spec(1);
  two.values.run.threads = 2;
  one.values.run.threads = 1;
  const auto variables = wait_variables(thread_count(two));
  ASSERT_TRUE(variables.contains("GOMP_SPINCOUNT"));
  record::CaseResult of_two, of_one, failed;
  add_threads(two, of_two);
  add_threads(one, of_one);
  EXPECT_EQ(variables.at("GOMP_SPINCOUNT"), std::to_string(of_two.threads.spin_count.value()));
  EXPECT_GT(of_two.threads.spin_us.value(), 0);
  EXPECT_EQ(of_two.threads.count, 2);
  EXPECT_TRUE(wait_variables(thread_count(one)).empty());
  EXPECT_EQ(of_one.threads.waiting, "");
  failed.status = record::Status::failed;
  add_threads(two, failed);
  EXPECT_TRUE(failed.threads.empty());
}

}  // namespace
}  // namespace assay::host::run::test
