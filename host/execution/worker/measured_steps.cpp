#include "worker/measured_steps.hpp"

#include <cstddef>

#include "telemetry/step_utilisation.hpp"

namespace assay::host::worker {
namespace {

constexpr double bytes_of_a_mib = 1024.0 * 1024.0;
// From here on a step's own utilisation is known, too: four periods of the telemetry's sampler.
constexpr double long_step_s = 0.2;

}  // namespace

MeasuredSteps::MeasuredSteps(const measure::MeasurePlan& plan) : is_known_(plan.sync) {
  if (!is_known_) return;
  const auto most = static_cast<std::size_t>(plan.most_steps());
  bounds_s_.reserve(most + 1);
  peak_bytes_.reserve(most);
}

void MeasuredSteps::begin() {
  if (is_known_) bounds_s_.push_back(telemetry::steady_now_s());
}

void MeasuredSteps::end(std::int64_t peak_bytes) {
  if (!is_known_) return;
  bounds_s_.push_back(telemetry::steady_now_s());
  peak_bytes_.push_back(peak_bytes);
}

std::vector<double> MeasuredSteps::peaks_mib() const {
  std::vector<double> peaks;
  for (std::size_t i = 0; i < peak_bytes_.size(); ++i) {
    if (bounds_s_[i + 1] - bounds_s_[i] < long_step_s) return {};
    peaks.push_back(static_cast<double>(peak_bytes_[i]) / bytes_of_a_mib);
  }
  return peaks;
}

}  // namespace assay::host::worker
