// One GPU as the timing of algorithms sees it: its name, its limits by NVML, and who else computes on it.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "common/algorithm_cache.hpp"
#include "telemetry_nvml.hpp"

namespace assay::cuda {

class GpuUse {
 public:
  explicit GpuUse(int ordinal);  // without NVML, driver and limits are unknown

  compute::TuningConditions conditions(std::string library) const;
  // Whether a choice by these times, of the winner and in microseconds, may be kept for other processes: they are
  // steady, and nobody else computes on the GPU. Says once on stderr why not.
  bool may_keep(std::span<const double> times_us);

 private:
  std::string name_;
  std::optional<NvmlReader> nvml_;
  bool has_said_ = false;
};

}  // namespace assay::cuda
