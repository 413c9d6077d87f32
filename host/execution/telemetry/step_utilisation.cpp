#include "telemetry/step_utilisation.hpp"

#include <algorithm>
#include <cstddef>

namespace assay::host::telemetry {
namespace {

constexpr double fewest_periods = 4;
constexpr double least_covered = 0.5;

}  // namespace

std::optional<std::vector<double>> step_utilisation_percent(const std::vector<UtilisationReading>& readings,
                                                            const std::vector<double>& bounds_s, double period_s) {
  if (bounds_s.size() < 2) return std::nullopt;
  std::vector<double> percents;
  // Readings come in the order of their ends, but their spans differ: each step looks at those that end after its
  // begin, until none can reach back into it.
  auto first = readings.begin();
  for (std::size_t i = 0; i + 1 < bounds_s.size(); ++i) {
    const double begin_s = bounds_s[i], end_s = bounds_s[i + 1], length_s = end_s - begin_s;
    if (length_s < fewest_periods * period_s) return std::nullopt;
    while (first != readings.end() && first->end_s <= begin_s) ++first;
    double covered_s = 0, sum = 0;
    for (auto reading = first; reading != readings.end(); ++reading) {
      if (reading->end_s - length_s >= end_s) break;  // no reading that counts spans more than the step
      if (reading->span_s > length_s) continue;
      const double shared_s = std::min(reading->end_s, end_s) - std::max(reading->end_s - reading->span_s, begin_s);
      if (shared_s <= 0) continue;
      covered_s += shared_s;
      sum += shared_s * reading->percent;
    }
    if (covered_s < least_covered * length_s) return std::nullopt;
    percents.push_back(sum / covered_s);
  }
  return percents;
}

}  // namespace assay::host::telemetry
