#include "worker/device_timeline.hpp"

#include <chrono>

namespace assay::host::worker {

DeviceTimeline::~DeviceTimeline() {
  for (assay_event* event : events_) device_.api().event_destroy(device_.handle(), event);
}

void DeviceTimeline::mark(std::uint32_t index) {
  device_.check(device_.api().event_record(device_.handle(), events_[index], device_.stream()), "recording an event");
}

void DeviceTimeline::reserve(std::uint32_t count) {
  events_.reserve(count);
  while (events_.size() < count) {
    assay_event* event = nullptr;
    device_.check(device_.api().event_create(device_.handle(), &event), "creating an event");
    events_.push_back(event);
  }
}

void DeviceTimeline::synchronize() {
  const Waiting waiting(observer_);
  device_.check(device_.api().stream_synchronize(device_.handle(), device_.stream()), "waiting for the device");
}

double DeviceTimeline::elapsed_ns(std::uint32_t begin, std::uint32_t end) {
  double ns = 0;
  device_.check(device_.api().event_elapsed_ns(device_.handle(), events_[begin], events_[end], &ns),
                "reading the time between events");
  return ns;
}

std::int64_t DeviceTimeline::host_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace assay::host::worker
