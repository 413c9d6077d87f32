#include "telemetry/telemetry_figures.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::host::telemetry {
namespace {

constexpr double settled_power_share = 0.5;  // of a window whose power is integrated, at least

// A reason that was seen once may be over.
constexpr std::uint64_t fewest_of_a_reason = 2;

struct Reason {
  std::uint64_t bit;
  const char* name;
  bool slows_work;
};
// Without the idle one: a GPU without work needs no clocks, and the utilisation says so.
constexpr std::array<Reason, 8> reasons{{{ASSAY_THROTTLE_POWER_CAP, "power_cap", false},
                                         {ASSAY_THROTTLE_THERMAL, "thermal", true},
                                         {ASSAY_THROTTLE_HW_THERMAL, "hw_thermal", true},
                                         {ASSAY_THROTTLE_HW_SLOWDOWN, "hw_slowdown", true},
                                         {ASSAY_THROTTLE_POWER_BRAKE, "power_brake", true},
                                         {ASSAY_THROTTLE_APPLICATION_CLOCKS, "application_clocks", false},
                                         {ASSAY_THROTTLE_SYNC_BOOST, "sync_boost", false},
                                         {ASSAY_THROTTLE_DISPLAY_CLOCKS, "display_clocks", false}}};

bool has(const assay_telemetry_sample& sample, std::uint64_t bit) { return (sample.known & bit) != 0; }

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

void TelemetryFigures::begin(const assay_telemetry_sample& sample, double now_s) {
  last_s_ = now_s;
  begin_s_ = now_s;
  if (has(sample, ASSAY_TELEMETRY_ENERGY)) energy_begin_j_ = sample.energy_j;
  add_foreign(sample);
}

void TelemetryFigures::within(const assay_telemetry_sample& sample, double now_s) {
  ++within_;
  add_moment(sample, now_s);
  add_utilisation(sample, now_s);
}

void TelemetryFigures::end(const assay_telemetry_sample& sample, double now_s) {
  end_s_ = now_s;
  if (within_ == 0) add_moment(sample, now_s);
  add_utilisation(sample, now_s);
  add_foreign(sample);
  if (has(sample, ASSAY_TELEMETRY_OWN_MEMORY)) own_memory_bytes_ = sample.own_memory_bytes;
  if (has(sample, ASSAY_TELEMETRY_ENERGY) && energy_begin_j_ && sample.energy_j >= *energy_begin_j_)
    energy_j_ = sample.energy_j - *energy_begin_j_;
}

void TelemetryFigures::add_utilisation(const assay_telemetry_sample& sample, double now_s) {
  const bool of_gpu = has(sample, ASSAY_TELEMETRY_GPU_UTILISATION);
  if ((!of_gpu && !has(sample, ASSAY_TELEMETRY_CPU_UTILISATION)) || sample.utilisation_span_s <= 0) return;
  is_of_gpu_ = of_gpu;
  utilisation_.add(sample.utilisation_percent, sample.utilisation_span_s);
  if (sample.utilisation_span_s >= period_s_ / 2) whole_utilisation_.add(sample.utilisation_percent);
  longest_span_s_ = std::max(longest_span_s_, sample.utilisation_span_s);
  readings_.push_back({now_s, sample.utilisation_span_s, sample.utilisation_percent});
}

void TelemetryFigures::add_moment(const assay_telemetry_sample& sample, double now_s) {
  ++samples_;
  const double span_s = now_s > last_s_ ? now_s - last_s_ : period_s_;
  last_s_ = std::max(last_s_, now_s);
  const auto add = [&](std::uint64_t bit, Series& series, double value) {
    if (has(sample, bit)) series.add(value, span_s);
  };
  add(ASSAY_TELEMETRY_SM_CLOCK, sm_clock_, sample.sm_clock_mhz);
  add(ASSAY_TELEMETRY_MEMORY_CLOCK, memory_clock_, sample.memory_clock_mhz);
  add(ASSAY_TELEMETRY_POWER, power_, sample.power_w);
  if (now_s >= begin_s_ + power_readings_.average_s) add(ASSAY_TELEMETRY_POWER, settled_power_, sample.power_w);
  add(ASSAY_TELEMETRY_TEMPERATURE, temperature_, sample.temperature_c);
  if (has(sample, ASSAY_TELEMETRY_SM_CLOCK)) {
    const double before_s = clock_readings_.empty() ? now_s - span_s : clock_readings_.back().end_s;
    clock_readings_.push_back({before_s + span_s, span_s, sample.sm_clock_mhz});
  }
  if (!has(sample, ASSAY_TELEMETRY_THROTTLE)) return;
  throttle_s_ += span_s;
  for (const Reason& reason : reasons) {
    if (!(sample.throttle & reason.bit)) continue;
    Held& held = held_[reason.bit];
    ++held.samples;
    held.span_s += span_s;
  }
}

void TelemetryFigures::add_foreign(const assay_telemetry_sample& sample) {
  if (has(sample, ASSAY_TELEMETRY_FOREIGN_PROCESSES)) keep_larger(foreign_processes_, sample.foreign_processes);
  if (has(sample, ASSAY_TELEMETRY_FOREIGN_MEMORY)) keep_larger(foreign_memory_bytes_, sample.foreign_memory_bytes);
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
  if (throttle_s_ <= 0) return std::nullopt;
  std::map<std::string, double> shares;
  for (const Reason& reason : reasons)
    if (const auto held = held_.find(reason.bit); held != held_.end())
      shares[reason.name] = std::min(held->second.span_s / throttle_s_, 1.0);
  return shares;
}

double TelemetryFigures::counted_share(std::uint64_t bit) const {
  const auto held = held_.find(bit);
  if (held == held_.end() || held->second.samples < fewest_of_a_reason || within_ == 0) return 0;
  const double share = held->second.span_s / throttle_s_;
  // As many equal spans as there are samples do not add up to exactly a twentieth of them.
  return share < throttled_share * (1 - 1e-9) ? 0 : std::min(share, 1.0);
}

std::map<std::string, double> TelemetryFigures::slowdowns() const {
  std::map<std::string, double> shares;
  for (const Reason& reason : reasons)
    if (const double share = counted_share(reason.bit); reason.slows_work && share > 0) shares[reason.name] = share;
  return shares;
}

double TelemetryFigures::power_capped() const { return counted_share(ASSAY_THROTTLE_POWER_CAP); }

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
  out.sm_clock_mhz = sm_clock_.if_any();
  out.memory_clock_mhz = memory_clock_.if_any();
  out.power_w = power_.if_any();
  out.temperature_c = temperature_.if_any();
  // Within one period the counter does not move, or shows the work of before.
  if (end_s_ - begin_s_ >= power_readings_.energy_period_s) out.energy_j = energy_j_;
  if (!settled_power_.is_empty() && (end_s_ - begin_s_) * settled_power_share >= power_readings_.average_s)
    out.power_integral_j = settled_power_.figure().mean * (end_s_ - begin_s_);
  if (const auto shares = throttle()) out.throttle.emplace(shares->begin(), shares->end());
  out.foreign_processes = foreign_processes_;
  if (foreign_memory_bytes_) out.foreign_memory_mib = static_cast<double>(*foreign_memory_bytes_) / 1048576.0;
  return out;
}

}  // namespace assay::host::telemetry
