// A device with scripted times: work advances its timeline when it "runs", and the host's clock moves when asked.
#pragma once
#include <algorithm>
#include <vector>

#include "measure/timeline.hpp"

namespace assay::host::measure::testing {

class ScriptedTimeline final : public Timeline {
 public:
  // Enqueues device work: later marks are `ns` later. The host does not wait for it.
  void device_work(double ns) {
    let_device_idle();
    device_now_ns_ += ns;
  }
  void host_work(std::int64_t ns) { host_now_ += ns; }
  // What each mark costs the host from here on, and each wait.
  void let_instruments_cost(std::int64_t mark_ns, std::int64_t wait_ns) { mark_ns_ = mark_ns, wait_ns_ = wait_ns; }

  void mark(std::uint32_t index) override {
    if (index >= marks_.size()) out_of_range_ = true;
    let_device_idle();
    marks_[index] = device_now_ns_;
    host_now_ += mark_ns_;
  }
  void reserve(std::uint32_t count) override {
    marks_.resize(count);
    ++reservations_;
  }
  void synchronize() override {
    ++synchronizations_;
    // Waiting lets the host's clock catch up with the device.
    if (static_cast<double>(host_now_) < device_now_ns_) host_now_ = static_cast<std::int64_t>(device_now_ns_);
    host_now_ += wait_ns_;
  }
  double elapsed_ns(std::uint32_t begin, std::uint32_t end) override { return marks_[end] - marks_[begin]; }
  std::int64_t host_now_ns() override { return host_now_; }

  int synchronizations() const { return synchronizations_; }
  int reservations() const { return reservations_; }
  bool out_of_range() const { return out_of_range_; }

 private:
  // Where instruments cost the host time, the device is not asked before the host gets to it.
  void let_device_idle() {
    if (mark_ns_ + wait_ns_ > 0) device_now_ns_ = std::max(device_now_ns_, static_cast<double>(host_now_));
  }

  double device_now_ns_ = 0;
  std::int64_t host_now_ = 0, mark_ns_ = 0, wait_ns_ = 0;
  std::vector<double> marks_;
  int synchronizations_ = 0;
  int reservations_ = 0;
  bool out_of_range_ = false;
};

}  // namespace assay::host::measure::testing
