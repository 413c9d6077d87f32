#include "gpu_use.hpp"

#include <cuda_runtime_api.h>
#include <assay/plugin.hpp>

#include <array>
#include <cstdio>
#include <utility>

#include "cuda_error.hpp"
#include "tuning_conditions.hpp"

namespace assay::cuda {

GpuUse::GpuUse(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "read the properties of the device");
  name_ = properties.name;
  std::array<char, 32> bus_address{};
  check(cudaDeviceGetPCIBusId(bus_address.data(), static_cast<int>(bus_address.size()), ordinal),
        "read the bus address");
  try {
    nvml_.emplace(bus_address.data());
  } catch (const Error&) {  // the case's telemetry says so, with the remedy
  }
}

compute::TuningConditions GpuUse::conditions(std::string library) const {
  compute::TuningConditions conditions{name_, std::move(library), "", ""};
  if (!nvml_) return conditions;
  assay_telemetry_limits limits{};
  limits.struct_size = sizeof limits;
  nvml_->limits(limits);
  conditions.driver = limits.driver;
  conditions.limits = limits_text(limits);
  return conditions;
}

bool GpuUse::may_keep(std::span<const double> times_us) {
  const bool is_shared = nvml_ && is_used_by_others(*nvml_);
  if (!is_shared && is_steady(times_us)) return true;
  if (!has_said_)
    std::fprintf(stderr, "assay: note: %s while algorithms were timed; this choice serves this process alone\n",
                 is_shared ? "another process computed on the GPU" : "the GPU's times were unsteady");
  has_said_ = true;
  return false;
}

}  // namespace assay::cuda
