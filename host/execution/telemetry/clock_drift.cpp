#include "telemetry/clock_drift.hpp"

#include <array>
#include <cmath>

namespace assay::host::telemetry {
namespace {

// Two make a mean with a known scatter.
constexpr std::size_t fewest_in_a_third = 2;
constexpr double clearly = 3;  // standard errors

struct Third {
  std::vector<ClockReading> readings;

  double mean_mhz() const {
    double sum = 0, weight = 0;
    for (const ClockReading& reading : readings) {
      sum += reading.mhz * reading.span_s;
      weight += reading.span_s;
    }
    return weight > 0 ? sum / weight : 0;
  }
  double squares_about_mean() const {
    const double mean = mean_mhz();
    double squares = 0;
    for (const ClockReading& reading : readings) squares += (reading.mhz - mean) * (reading.mhz - mean);
    return squares;
  }
};

}  // namespace

std::optional<ClockDrift> clock_drift(const std::vector<ClockReading>& readings) {
  if (readings.size() < fewest_clock_readings) return std::nullopt;
  const double begin_s = readings.front().end_s - readings.front().span_s;
  const double third_s = (readings.back().end_s - begin_s) / 3;
  std::array<Third, 3> thirds;
  for (const ClockReading& reading : readings) {
    const double middle_s = reading.end_s - reading.span_s / 2 - begin_s;
    thirds[middle_s < third_s ? 0 : middle_s < 2 * third_s ? 1 : 2].readings.push_back(reading);
  }
  const Third &first = thirds.front(), &last = thirds.back();
  if (first.readings.size() < fewest_in_a_third || last.readings.size() < fewest_in_a_third) return std::nullopt;
  ClockDrift drift{first.mean_mhz(), last.mean_mhz(), false};
  // The scatter within each third, so that a drift does not hide itself.
  double squares = 0, freedom = 0;
  for (const Third& third : thirds) {
    if (third.readings.empty()) continue;
    squares += third.squares_about_mean();
    freedom += static_cast<double>(third.readings.size() - 1);
  }
  const double of_each = 1 / static_cast<double>(first.readings.size()) + 1 / static_cast<double>(last.readings.size());
  const double standard_error = std::sqrt(squares / freedom * of_each);
  drift.is_drift =
      std::abs(drift.change()) > steady_within && std::abs(drift.last_mhz - drift.first_mhz) > clearly * standard_error;
  return drift;
}

}  // namespace assay::host::telemetry
