#include "run/thread_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "telemetry/contention.hpp"

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
  EXPECT_EQ(thread_setting(asked, true), "9");
  EXPECT_EQ(thread_count(asked, true).count_from, "OMP_NUM_THREADS=9");
  asked.values.run.threads = 3;
  EXPECT_EQ(thread_setting(asked, true), "3");
  EXPECT_EQ(thread_count(asked, true).count_from, "[run] threads");
  setenv(threads_variable, "4,2", 1);
  asked.values.run.threads = 0;
  EXPECT_EQ(thread_setting(asked), "4") << "the outermost of a list";
}

TEST_F(ThreadPlans, NeighboursTakeTheirs) {
  keep_taken_processors(static_cast<double>(usable()));
  const record::Threads left = thread_count(spec(1), true);
  EXPECT_EQ(left.count, 1);
  EXPECT_EQ(thread_count(spec(1), false).taken_processors, std::nullopt) << "the hosts and workers of other ranks";
  if (usable() > 1) {
    EXPECT_EQ(left.taken_processors, static_cast<double>(usable()));
    EXPECT_NE(left.count_from.find("kept busy by other processes when the run began"), std::string::npos);
    record::CaseResult result;
    add_threads(spec(1), true, result);
    ASSERT_TRUE(result.notes);
    EXPECT_NE(result.notes->front().find("[run] threads sets another number"), std::string::npos);
  }
  worker::CaseSpec on_gpu = spec(1);
  on_gpu.device_kind = "cuda";
  EXPECT_EQ(thread_count(on_gpu, true).taken_processors, std::nullopt);
  keep_taken_processors(0);
  EXPECT_EQ(thread_count(spec(1), true).count, thread_count(spec(1), false).count);
}

TEST_F(ThreadPlans, AMachineIsSharedWithOtherHostsOfALaunch) {
  EXPECT_TRUE(has_machine_to_itself({spec(1)}));
  EXPECT_TRUE(has_machine_to_itself({spec(2), spec(2)}));
  EXPECT_FALSE(has_machine_to_itself({spec(2)}));
}

TEST_F(ThreadPlans, WaitingIsBoundedWhereThereIsAnyoneToWaitFor) {
  worker::CaseSpec two = spec(1), one = spec(1);
  two.values.run.threads = 2;
  one.values.run.threads = 1;
  const auto variables = wait_variables(thread_count(two, false));
  ASSERT_TRUE(variables.contains("GOMP_SPINCOUNT"));
  record::CaseResult of_two, of_one, failed;
  add_threads(two, false, of_two);
  add_threads(one, false, of_one);
  EXPECT_EQ(variables.at("GOMP_SPINCOUNT"), std::to_string(of_two.threads.spin_count.value()));
  EXPECT_GT(of_two.threads.spin_us.value(), 0);
  EXPECT_EQ(of_two.threads.count, 2);
  EXPECT_TRUE(wait_variables(thread_count(one, false)).empty());
  EXPECT_EQ(of_one.threads.waiting, "");
  failed.status = record::Status::failed;
  add_threads(two, false, failed);
  EXPECT_TRUE(failed.threads.empty());
}

}  // namespace
}  // namespace assay::host::run::test
