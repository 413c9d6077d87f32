// Whether a clock was steady over a window, or came to another frequency while it was measured.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace assay::host::telemetry {

// A clock at one moment, and the time span that this reading alone covers.
struct ClockReading {
  double end_s = 0, span_s = 0, mhz = 0;
};

// Over fewer readings nothing is said of a clock.
inline constexpr std::size_t fewest_clock_readings = 6;
// The mean of the last third of a window may lie so far from that of its first third.
inline constexpr double steady_within = 0.03;

struct ClockDrift {
  double first_mhz = 0, last_mhz = 0;  // the means of the first and of the last third of the window
  // The two lie further apart than `steady_within`, and three times as far as chance puts the means of readings that
  // scatter as these do: at its power cap a GPU jumps by a tenth from one reading to the next around a steady mean.
  bool is_drift = false;

  double change() const { return first_mhz > 0 ? last_mhz / first_mhz - 1 : 0; }
};

// `readings` in the order of their ends. Nothing where there are too few of them, in all or in a third.
std::optional<ClockDrift> clock_drift(const std::vector<ClockReading>& readings);

}  // namespace assay::host::telemetry
