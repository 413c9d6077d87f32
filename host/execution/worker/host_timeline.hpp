// The Timeline of a workload whose steps happen in other processes: both clocks are the host's, and the device is left
// alone. A worker that marks and awaits steps on a GPU on which another process works makes the GPU change between two
// processes' contexts in each of them.
#pragma once
#include <chrono>
#include <vector>

#include "measure/timeline.hpp"

namespace assay::host::worker {

class HostTimeline final : public measure::Timeline {
 public:
  void mark(std::uint32_t index) override { marks_ns_[index] = host_now_ns(); }
  void reserve(std::uint32_t count) override {
    if (marks_ns_.size() < count) marks_ns_.resize(count);
  }
  void synchronize() override {}
  double elapsed_ns(std::uint32_t begin, std::uint32_t end) override {
    return static_cast<double>(marks_ns_[end] - marks_ns_[begin]);
  }
  std::int64_t host_now_ns() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  std::vector<std::int64_t> marks_ns_;
};

}  // namespace assay::host::worker
