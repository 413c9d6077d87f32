#include "tuning_conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "telemetry_nvml.hpp"

namespace assay::cuda {

std::string limits_text(const assay_telemetry_limits& limits) {
  const auto knows = [&](std::uint64_t bit) { return (limits.known & bit) != 0; };
  std::string text;
  const auto add = [&](const char* name, const char* unit, std::uint64_t bit, double in_force, std::uint64_t own_bit,
                       double own) {
    if (!knows(bit) && !knows(own_bit)) return;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
    if (knows(bit)) text += fmt::format(" {:.0f} {}", in_force, unit);
    if (knows(own_bit)) text += fmt::format(" of {:.0f} {}", own, unit);
  };
  add("SM", "MHz", ASSAY_LIMIT_APPLICATION_SM_CLOCK, limits.application_sm_clock_mhz, ASSAY_LIMIT_MAX_SM_CLOCK,
      limits.max_sm_clock_mhz);
  add("memory", "MHz", ASSAY_LIMIT_APPLICATION_MEMORY_CLOCK, limits.application_memory_clock_mhz,
      ASSAY_LIMIT_MAX_MEMORY_CLOCK, limits.max_memory_clock_mhz);
  add("power", "W", ASSAY_LIMIT_POWER, limits.power_w, ASSAY_LIMIT_DEFAULT_POWER, limits.default_power_w);
  return text;
}

bool is_steady(std::span<const double> times_us) {
  constexpr double most_spread = 1.10;  // a clock that changes within a trial stays below it
  if (times_us.size() < 2) return true;
  std::vector<double> sorted(times_us.begin(), times_us.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2] <= sorted.front() * most_spread;
}

bool is_used_by_others(NvmlReader& reader) {
  assay_telemetry_sample sample{};
  sample.struct_size = sizeof sample;
  reader.sample(ASSAY_TELEMETRY_END, sample);
  return (sample.known & ASSAY_TELEMETRY_FOREIGN_PROCESSES) != 0 && sample.foreign_processes > 0;
}

}  // namespace assay::cuda
