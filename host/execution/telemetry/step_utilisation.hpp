// How busy the device was in each measured step, where steps are long enough for it.
#pragma once
#include <chrono>
#include <optional>
#include <vector>

namespace assay::host::telemetry {

// Seconds on the clock of readings and of steps, which are compared with each other.
inline double steady_now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The mean utilisation over the `span_s` seconds before `end_s` on that clock.
struct UtilisationReading {
  double end_s = 0, span_s = 0, percent = 0;
};

// `bounds_s`: the begin of the first step and the end of each. The mean of a step is weighted by the time that each
// reading shares with it; a reading over a longer time than the step's does not describe it alone or count.
// Nothing where a step is shorter than four periods, or where readings cover less than half of one.
std::optional<std::vector<double>> step_utilisation_percent(const std::vector<UtilisationReading>& readings,
                                                            const std::vector<double>& bounds_s, double period_s);

}  // namespace assay::host::telemetry
