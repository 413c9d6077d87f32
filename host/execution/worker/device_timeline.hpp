// The Timeline of a real device: its events are the marks.
#pragma once
#include "measure/timeline.hpp"
#include "plugin/device_library.hpp"
#include "worker/observer.hpp"

#include <vector>

namespace assay::host::worker {

class DeviceTimeline final : public measure::Timeline {
 public:
  DeviceTimeline(const plugin::OpenDevice& device, CaseObserver& observer) : device_(device), observer_(observer) {}
  ~DeviceTimeline() override;

  void mark(std::uint32_t index) override;
  void reserve(std::uint32_t count) override;
  void synchronize() override;
  double elapsed_ns(std::uint32_t begin, std::uint32_t end) override;
  std::int64_t host_now_ns() override;

 private:
  const plugin::OpenDevice& device_;
  CaseObserver& observer_;
  std::vector<assay_event*> events_;
};

}  // namespace assay::host::worker
