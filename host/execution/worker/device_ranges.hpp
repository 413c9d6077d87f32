// The ranges of a real device's profiler: `measure`, in it each `step`, and in that the workload's phases by name.
#pragma once
#include "measure/step_ranges.hpp"
#include "plugin/device_library.hpp"

#include <string>
#include <vector>

namespace assay::host::worker {

class DeviceRanges final : public measure::StepRanges {
 public:
  // Both outlive this object.
  DeviceRanges(const plugin::OpenDevice& device, const std::vector<std::string>& phase_names)
      : device_(device), phase_names_(phase_names) {}
  // A case that failed inside a step leaves none of its ranges open to the case after it.
  ~DeviceRanges() override;

  static bool are_offered_by(const plugin::OpenDevice& device) {
    return device.api().range_push && device.api().range_pop;
  }

  void begin_measure() { begin("measure"); }
  void begin_step() override { begin("step"); }
  void begin_phase(std::uint32_t phase) override { begin(phase_names_[phase].c_str()); }
  void end() override;

 private:
  void begin(const char* name);

  const plugin::OpenDevice& device_;
  const std::vector<std::string>& phase_names_;
  int open_ = 0;
};

}  // namespace assay::host::worker
