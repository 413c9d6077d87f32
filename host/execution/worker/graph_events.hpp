// The device's switch for the events that captured steps record (assay.graph_events/1).
#pragma once
#include <functional>

#include "plugin/device_library.hpp"

namespace assay::host::worker {

struct GraphEvents {
  double event_ns = 0;  // what the backend states that each adds to a step
  // Throws DeviceError. Empty where the backend has no switch: then events are recorded.
  std::function<void(bool on)> record;
};

// `device` outlives what is returned.
GraphEvents graph_events_of(const plugin::OpenDevice& device);

}  // namespace assay::host::worker
