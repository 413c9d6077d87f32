#include "run/group_request.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "run/thread_plan.hpp"
#include "telemetry/contention.hpp"

namespace assay::host::run::test {
namespace {

using namespace std::chrono_literals;

class GroupRequests : public testing::Test {
 protected:
  GroupRequests() { unsetenv(threads_variable); }
  static worker::CaseSpec spec(std::int32_t rank, std::int32_t count) {
    worker::CaseSpec spec;
    spec.run_folder = "/runs/demo";
    spec.phase_names = {"forward"};
    spec.device_kind = "cpu";
    spec.ranks.rank = rank, spec.ranks.count = count;
    spec.ranks.local_rank = rank, spec.ranks.local_count = count;
    spec.ranks.sharer = rank, spec.ranks.sharer_count = count;
    spec.values.measure.timeout = 7s;
    spec.values.run.stall_timeout = 3s;
    spec.values.run.memory_limit_bytes = 1000;
    return spec;
  }

  launch::InterruptHandler interrupts_;
};

TEST_F(GroupRequests, ARankThatIsAloneIsNeitherJudgedNorStalled) {
  const launch::GroupRequest request = group_request({spec(0, 1)}, interrupts_);
  ASSERT_EQ(request.workers.size(), 1u);
  EXPECT_EQ(request.ranks, std::vector<std::int32_t>{0});
  EXPECT_EQ(request.timeout, 7s);
  EXPECT_EQ(request.stall_timeout, 0s);
  EXPECT_FALSE(request.judge_result);
  EXPECT_EQ(request.wake_fd, interrupts_.wake_fd());
  const launch::WorkerRequest& worker = request.workers.front();
  EXPECT_EQ(worker.arguments, std::vector<std::string>{"worker"});
  EXPECT_EQ(worker.log_file, "/runs/demo/logs/case-0001.log");
  EXPECT_EQ(worker.memory_limit_bytes, 1000u);
  EXPECT_EQ(worker.phase_names, std::vector<std::string>{"forward"});
  EXPECT_TRUE(worker.processors.empty());
}

TEST_F(GroupRequests, SeveralRanksAreJudgedAndMayStall) {
  const launch::GroupRequest request = group_request({spec(0, 2), spec(1, 2)}, interrupts_);
  EXPECT_EQ(request.ranks, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(request.stall_timeout, 3s);
  EXPECT_TRUE(request.judge_result);
  // The same for the only one of them that this machine has.
  EXPECT_EQ(group_request({spec(1, 2)}, interrupts_).stall_timeout, 3s);
}

TEST_F(GroupRequests, TheWorkerGetsTheSpecificationItself) {
  const worker::CaseSpec sent = spec(1, 1);
  const launch::GroupRequest request = group_request({sent}, interrupts_);
  EXPECT_EQ(nlohmann::json::parse(request.workers.front().spec), to_json(sent));
}

TEST_F(GroupRequests, BoundRanksCutTheProcessorsIntoPieces) {
  std::vector<worker::CaseSpec> here = {spec(0, 2), spec(1, 2)};
  for (worker::CaseSpec& one : here) one.values.run.bind = "cores";
  const launch::GroupRequest request = group_request(here, interrupts_);
  const std::set<int> usable = telemetry::usable_processors();
  std::vector<int> all = request.workers[0].processors;
  all.insert(all.end(), request.workers[1].processors.begin(), request.workers[1].processors.end());
  EXPECT_FALSE(request.workers[0].processors.empty());
  EXPECT_FALSE(request.workers[1].processors.empty());
  // With one processor for both, they share it.
  if (usable.size() > 1) {
    EXPECT_EQ(all, std::vector<int>(usable.begin(), usable.end()));
  }
}

TEST_F(GroupRequests, AProbeIsAGroupOfOne) {
  const launch::GroupRequest request = probe_request("auto", "", "/runs/demo/logs/devices.log", interrupts_);
  ASSERT_EQ(request.workers.size(), 1u);
  EXPECT_EQ(request.timeout, 60s);
  EXPECT_EQ(worker::probe_from_json(nlohmann::json::parse(request.workers.front().spec)), "auto");
  EXPECT_EQ(request.workers.front().log_file, "/runs/demo/logs/devices.log");
}

}  // namespace
}  // namespace assay::host::run::test
