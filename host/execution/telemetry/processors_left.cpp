#include "telemetry/processors_left.hpp"

#include <algorithm>
#include <cmath>

namespace assay::host::telemetry {
namespace {

constexpr double stillness = 0.1;

}  // namespace

double taken_processors(const std::map<int, CpuTicks>& begin, const std::map<int, CpuTicks>& end) {
  double taken = 0;
  for (const auto& [processor, after] : end) {
    const auto before = begin.find(processor);
    if (before == begin.end()) continue;
    const double busy =
        static_cast<double>(after.busy + after.steal) - static_cast<double>(before->second.busy + before->second.steal);
    const double idle = static_cast<double>(after.idle) - static_cast<double>(before->second.idle);
    if (busy + idle <= 0) continue;
    taken += std::max(busy / (busy + idle) - stillness, 0.0);
  }
  return taken;
}

std::size_t allowed_processors(std::size_t usable, std::optional<double> quota_cores) {
  double allowed = static_cast<double>(usable);
  // What is a tenth short of a whole processor is one.
  if (quota_cores) allowed = std::min(allowed, std::floor(*quota_cores + stillness));
  return static_cast<std::size_t>(std::max(allowed, 1.0));
}

}  // namespace assay::host::telemetry
