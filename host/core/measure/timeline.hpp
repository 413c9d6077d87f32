// The two clocks of a measurement: the device's own timeline, and the host's. An interface, so that the loop is tested
// against a device with scripted times.
#pragma once
#include <cstdint>

namespace assay::host::measure {

class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  virtual ~Timeline() = default;

  // Enqueues mark number `index` (below the reserved count) on the device's stream.
  virtual void mark(std::uint32_t index) = 0;
  // Makes room for marks 0 .. count-1; may allocate.
  virtual void reserve(std::uint32_t count) = 0;
  // Waits until everything enqueued has been done.
  virtual void synchronize() = 0;
  // Device time between two marks that have happened.
  virtual double elapsed_ns(std::uint32_t begin, std::uint32_t end) = 0;
  virtual std::int64_t host_now_ns() = 0;
};

}  // namespace assay::host::measure
