// From the samples of a measured window to the `telemetry` of a record (docs/record.md, "Telemetry").
#pragma once
#include <assay/telemetry.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/case_record.hpp"
#include "telemetry/clock_drift.hpp"
#include "telemetry/step_utilisation.hpp"

namespace assay::host::telemetry {

// From this share of the time on a reason that holds the clocks down counts.
inline constexpr double throttled_share = 0.05;

// How a device reads its power and energy.
struct PowerReadings {
  // The time that a reading of the power averages, 0: of its moment. Where no file describes the device: what NVML's
  // documentation says of GPUs from Ampere on, but GA100.
  double average_s = 1;
  double energy_period_s = 0;  // from one value of the energy counter to the next; 0: not known, or too short to matter
};

// Takes samples as they come and keeps sums; of the utilisation and of the SM clock it keeps each reading, for the
// steps' own means and for the drift: four megabytes in an hour. Samples do not come evenly (sampler.hpp), so each
// counts for the time since the one before it.
class TelemetryFigures {
 public:
  explicit TelemetryFigures(double period_s, PowerReadings power = {}) : period_s_(period_s), power_readings_(power) {}

  void begin(const assay_telemetry_sample& sample, double now_s = 0);
  // `now_s`: when the sample was taken, on the clock of the steps (step_utilisation.hpp).
  void within(const assay_telemetry_sample& sample, double now_s = 0);
  // What is reported of a moment (clocks, power, temperature, what holds the clocks down) counts only when nothing came
  // within: the work is over when a window ends.
  void end(const assay_telemetry_sample& sample, double now_s = 0);

  std::uint64_t samples() const { return samples_; }  // of moments
  // Of those, how many came while the work went on. The one that stands for a window without any was taken when the
  // work was over, and decides nothing.
  std::uint64_t samples_within() const { return within_; }
  double period_s() const { return period_s_; }
  std::optional<record::Figure> utilisation() const;
  bool is_of_gpu() const { return is_of_gpu_; }
  // The longest time over which a utilisation was averaged, 0 if none was reported.
  double utilisation_span_s() const { return longest_span_s_; }
  // Shares of the window's time by the name of what holds the clocks down; nothing where the device does not report it.
  std::optional<std::map<std::string, double>> throttle() const;
  // Of those, what takes clocks away from a GPU that is within its power: heat and the hardware's own protection. Only
  // what was seen twice, in a twentieth of the time or more.
  std::map<std::string, double> slowdowns() const;
  // The share of the time in which the power cap held the clocks down; 0 where it was seen less than that.
  double power_capped() const;
  // Nothing where there are too few readings of the SM clock, or none.
  std::optional<ClockDrift> sm_clock_drift() const { return clock_drift(clock_readings_); }
  std::optional<record::Figure> sm_clock_mhz() const { return sm_clock_.if_any(); }
  // Of the readings that average over nothing before the window.
  std::optional<record::Figure> power_w_within() const { return settled_power_.if_any(); }
  std::optional<std::uint64_t> foreign_processes() const { return foreign_processes_; }
  // What this process and those that it has started held of the device's memory when the window ended.
  std::optional<std::uint64_t> own_memory_bytes() const { return own_memory_bytes_; }

  // `bounds_s`: of the measured steps, or none where nobody knows when they ended.
  record::Telemetry telemetry(const std::vector<double>& bounds_s = {}) const;

 private:
  class Series {
   public:
    void add(double value, double weight = 1);
    bool is_empty() const { return weight_ <= 0; }
    // Rounding must not put the mean of equal values beside them.
    record::Figure figure() const { return {std::clamp(sum_ / weight_, min_, max_), min_, max_}; }
    std::optional<record::Figure> if_any() const { return is_empty() ? std::nullopt : std::optional(figure()); }

   private:
    double sum_ = 0, weight_ = 0, min_ = 0, max_ = 0;
  };

  void add_utilisation(const assay_telemetry_sample& sample, double now_s);
  void add_moment(const assay_telemetry_sample& sample, double now_s);
  // The share of this reason; 0 where it was seen too rarely to count.
  double counted_share(std::uint64_t bit) const;
  void add_foreign(const assay_telemetry_sample& sample);

  double period_s_;
  PowerReadings power_readings_;
  std::uint64_t samples_ = 0, within_ = 0;
  bool is_of_gpu_ = false;
  Series utilisation_;        // weighted by the time that each covers
  Series whole_utilisation_;  // of those that cover half a period at least: the others swing for no reason
  double longest_span_s_ = 0;
  std::vector<UtilisationReading> readings_;
  Series sm_clock_, memory_clock_, power_, temperature_;
  Series settled_power_;  // of the samples that average over nothing before the window
  double begin_s_ = 0, end_s_ = 0;
  std::optional<double> energy_begin_j_, energy_j_;
  std::vector<ClockReading> clock_readings_;
  double last_s_ = 0;  // when the sample before was taken
  double throttle_s_ = 0;
  struct Held {
    std::uint64_t samples = 0;
    double span_s = 0;
  };
  std::map<std::uint64_t, Held> held_;                                     // by bit
  std::optional<std::uint64_t> foreign_processes_, foreign_memory_bytes_;  // the larger of both ends
  std::optional<std::uint64_t> own_memory_bytes_;
};

}  // namespace assay::host::telemetry
