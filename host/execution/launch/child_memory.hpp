// While a worker runs, ChildMemory reports how much memory the processes hold that it has started.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::launch {

class ChildMemory {
 public:
  using Clock = std::chrono::steady_clock;

  // `adopter`: the process that descendants go to when their parent has ended. `entry`: the text that stands in the
  // environment of every descendant ("NAME=value"). New ones are looked for every `interval`.
  ChildMemory(pid_t worker, pid_t adopter, std::string entry, std::chrono::milliseconds interval)
      : worker_(worker), adopter_(adopter), entry_(std::move(entry)), interval_(interval) {}

  // All of them now; 0 where there is none. Pages that a child shares with its parent since a fork count for both.
  std::uint64_t resident_bytes(Clock::time_point now);
  // The worker and all of them, shared pages counted once; 0 where the kernel does not say. Costs time in proportion
  // to their memory, so the figure may be a quarter of a second old.
  std::uint64_t bytes_with_worker(Clock::time_point now);

 private:
  pid_t worker_, adopter_;
  std::string entry_;
  std::chrono::milliseconds interval_;
  std::vector<pid_t> known_;
  Clock::time_point looked_at_, added_up_at_;
  std::uint64_t added_up_bytes_ = 0;
};

}  // namespace assay::host::launch
