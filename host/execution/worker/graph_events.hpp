// The device's switch for the events that captured steps record (assay.graph_events/1).
#pragma once
#include <cstdint>
#include <functional>

#include "experiment/device_description.hpp"
#include "plugin/device_library.hpp"

namespace assay::host::worker {

struct GraphEvents {
  double event_ns = 0;  // what the backend states that each adds to a step, whatever the GPU
  // Throws DeviceError. Empty where the backend has no switch: then events are recorded.
  std::function<void(bool on)> record;
  experiment::DeviceFacts facts{};  // of this device, where a file describes it

  // What each of so many adds: as measured on such a device, or as the backend states it.
  double ns_of_each(std::int64_t events) const;
  bool is_measured(std::int64_t events) const { return facts.captured_event_us(events).has_value(); }
};

// `device` outlives what is returned.
GraphEvents graph_events_of(const plugin::OpenDevice& device, const experiment::DeviceFacts& facts);

}  // namespace assay::host::worker
