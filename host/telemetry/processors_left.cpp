#include "telemetry/processors_left.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "telemetry/text_files.hpp"

namespace assay::host::telemetry {
namespace {

constexpr double stillness = 0.1;

std::map<int, CpuTicks> usable_ticks() {
  std::map<int, CpuTicks> ticks;
  const std::set<int> usable = usable_processors();
  if (const auto text = read_text("/proc/stat")) ticks = parse_proc_stat(*text);
  std::erase_if(ticks, [&usable](const auto& entry) { return !usable.contains(entry.first); });
  return ticks;
}

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

double measure_taken_processors(std::chrono::milliseconds window) {
  const std::map<int, CpuTicks> begin = usable_ticks();
  std::this_thread::sleep_for(window);
  return taken_processors(begin, usable_ticks());
}

std::size_t processors_left(std::size_t usable, std::optional<double> quota_cores, double taken) {
  double left = static_cast<double>(usable);
  // What is a tenth short of a whole processor is one.
  if (quota_cores) left = std::min(left, std::floor(*quota_cores + stillness));
  return static_cast<std::size_t>(std::max(left - std::round(taken), 1.0));
}

}  // namespace assay::host::telemetry
