#include "telemetry/telemetry_figures.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::host::telemetry {
namespace {

struct Reason {
  std::uint64_t bit;
  const char* name;
  bool slows_work;
};
// Without the idle one: a GPU without work needs no clocks, and the utilisation says so.
constexpr std::array<Reason, 8> reasons{{{ASSAY_THROTTLE_POWER_CAP, "power_cap", true},
                                         {ASSAY_THROTTLE_THERMAL, "thermal", true},
                                         {ASSAY_THROTTLE_HW_THERMAL, "hw_thermal", true},
                                         {ASSAY_THROTTLE_HW_SLOWDOWN, "hw_slowdown", true},
                                         {ASSAY_THROTTLE_POWER_BRAKE, "power_brake", true},
                                         {ASSAY_THROTTLE_APPLICATION_CLOCKS, "application_clocks", false},
                                         {ASSAY_THROTTLE_SYNC_BOOST, "sync_boost", false},
                                         {ASSAY_THROTTLE_DISPLAY_CLOCKS, "display_clocks", false}}};

bool tells(const assay_telemetry_sample& sample, std::uint64_t bit) { return (sample.known & bit) != 0; }

void keep_larger(std::optional<std::uint64_t>& largest, std::uint64_t value) {
  largest = std::max(largest.value_or(0), value);
}

}  // namespace

void TelemetryFigures::Series::add(double value, double weight) {
  min_ = is_empty() ? value : std::min(min_, value);
  max_ = is_empty() ? value : std::max(max_, value);
  sum_ += value * weight;
  weight_ += weight;
}

void TelemetryFigures::begin(const assay_telemetry_sample& sample) {
  if (tells(sample, ASSAY_TELEMETRY_ENERGY)) energy_begin_j_ = sample.energy_j;
  add_foreign(sample);
}

void TelemetryFigures::within(const assay_telemetry_sample& sample, double now_s) {
  ++within_;
  add_moment(sample);
  add_utilisation(sample, now_s);
}

void TelemetryFigures::end(const assay_telemetry_sample& sample, double now_s) {
  if (is_shorter_than_a_period()) add_moment(sample);
  add_utilisation(sample, now_s);
  add_foreign(sample);
  if (tells(sample, ASSAY_TELEMETRY_ENERGY) && energy_begin_j_ && sample.energy_j >= *energy_begin_j_)
    energy_j_ = sample.energy_j - *energy_begin_j_;
}

void TelemetryFigures::add_utilisation(const assay_telemetry_sample& sample, double now_s) {
  const bool of_gpu = tells(sample, ASSAY_TELEMETRY_GPU_UTILISATION);
  if ((!of_gpu && !tells(sample, ASSAY_TELEMETRY_CPU_UTILISATION)) || sample.utilisation_span_s <= 0) return;
  is_of_gpu_ = of_gpu;
  utilisation_.add(sample.utilisation_percent, sample.utilisation_span_s);
  if (sample.utilisation_span_s >= period_s_ / 2) whole_utilisation_.add(sample.utilisation_percent);
  longest_span_s_ = std::max(longest_span_s_, sample.utilisation_span_s);
  readings_.push_back({now_s, sample.utilisation_span_s, sample.utilisation_percent});
}

void TelemetryFigures::add_moment(const assay_telemetry_sample& sample) {
  ++samples_;
  const auto add = [&sample](std::uint64_t bit, Series& series, double value) {
    if (tells(sample, bit)) series.add(value);
  };
  add(ASSAY_TELEMETRY_SM_CLOCK, sm_clock_, sample.sm_clock_mhz);
  add(ASSAY_TELEMETRY_MEMORY_CLOCK, memory_clock_, sample.memory_clock_mhz);
  add(ASSAY_TELEMETRY_POWER, power_, sample.power_w);
  add(ASSAY_TELEMETRY_TEMPERATURE, temperature_, sample.temperature_c);
  if (!tells(sample, ASSAY_TELEMETRY_THROTTLE)) return;
  ++throttle_samples_;
  for (const Reason& reason : reasons)
    if (sample.throttle & reason.bit) ++throttle_counts_[reason.bit];
}

void TelemetryFigures::add_foreign(const assay_telemetry_sample& sample) {
  if (tells(sample, ASSAY_TELEMETRY_FOREIGN_PROCESSES)) keep_larger(foreign_processes_, sample.foreign_processes);
  if (tells(sample, ASSAY_TELEMETRY_FOREIGN_MEMORY)) keep_larger(foreign_memory_bytes_, sample.foreign_memory_bytes);
}

std::optional<record::Figure> TelemetryFigures::utilisation() const {
  if (utilisation_.is_empty()) return std::nullopt;
  record::Figure figure = utilisation_.figure();
  if (!whole_utilisation_.is_empty()) {
    figure.min = std::min(whole_utilisation_.figure().min, figure.mean);
    figure.max = std::max(whole_utilisation_.figure().max, figure.mean);
  }
  return figure;
}

std::optional<std::map<std::string, double>> TelemetryFigures::throttle() const {
  if (throttle_samples_ == 0) return std::nullopt;
  std::map<std::string, double> shares;
  for (const Reason& reason : reasons)
    if (const auto count = throttle_counts_.find(reason.bit); count != throttle_counts_.end())
      shares[reason.name] = static_cast<double>(count->second) / static_cast<double>(throttle_samples_);
  return shares;
}

std::map<std::string, double> TelemetryFigures::slowdowns() const {
  std::map<std::string, double> shares = throttle().value_or(std::map<std::string, double>());
  for (const Reason& reason : reasons)
    if (!reason.slows_work) shares.erase(reason.name);
  return shares;
}

record::Telemetry TelemetryFigures::telemetry(const std::vector<double>& bounds_s) const {
  record::Telemetry out;
  out.samples = samples_;
  out.period_ms = period_s_ * 1e3;
  if (const auto figure = utilisation()) {
    (is_of_gpu_ ? out.gpu_utilisation_percent : out.cpu_utilisation_percent) = *figure;
    if (is_of_gpu_) out.utilisation_span_s = longest_span_s_;
  }
  if (auto percents = step_utilisation_percent(readings_, bounds_s, period_s_))
    out.step_utilisation_percent = std::move(*percents);
  out.sm_clock_mhz = sm_clock_.told();
  out.memory_clock_mhz = memory_clock_.told();
  out.power_w = power_.told();
  out.temperature_c = temperature_.told();
  out.energy_j = energy_j_;
  if (const auto shares = throttle()) out.throttle.emplace(shares->begin(), shares->end());
  out.foreign_processes = foreign_processes_;
  if (foreign_memory_bytes_) out.foreign_memory_mib = static_cast<double>(*foreign_memory_bytes_) / 1048576.0;
  return out;
}

}  // namespace assay::host::telemetry
