#include "telemetry/validity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace assay::host::telemetry {
namespace {

record::Validity of_processors(const Contention& contention) {
  if (!contention.others_share && !contention.steal_share)
    return {record::ValidityVerdict::unknown,
            contention.window_s < shortest_window_s
                ? fmt::format("measured for {:.2g} s, and {} s are needed to see contention; use more steps "
                              "([measure] steps)",
                              contention.window_s, shortest_window_s)
                : "the kernel does not account for the time of its processors (/proc/stat)"};
  std::vector<std::string> found;
  if (contention.others_share.value_or(0) > contended_share)
    found.push_back(fmt::format("other processes took {:.0f}% of the processors", *contention.others_share * 100));
  if (const double stolen = std::max(contention.steal_share.value_or(0), contention.worst_steal_share);
      stolen > contended_share)
    found.push_back(fmt::format("the hypervisor gave {:.0f}% of {} to other guests", stolen * 100,
                                contention.worst_steal_share > 0 ? "a processor" : "the processors"));
  // Where nobody knows for whom they waited, they may have waited for others.
  const double stalled = contention.stall_share.value_or(0);
  const double stalled_by_others = contention.foreign_stall_share.value_or(stalled);
  if (stalled_by_others > contended_share)
    found.push_back(
        fmt::format("its threads waited for other processes in {:.0f}% of the time", stalled_by_others * 100));
  if (!found.empty()) return {record::ValidityVerdict::contended, fmt::format("{}", fmt::join(found, "; "))};
  return {record::ValidityVerdict::valid,
          fmt::format("nobody else took more than {:.0f}% of the processors{}", contended_share * 100,
                      !contention.stall_share     ? "; whether its threads waited for a processor is unknown"
                      : stalled > contended_share ? "; its threads waited for one another alone"
                                                  : ", and its threads did not wait for one")};
}

std::string of_device_to_itself(const TelemetryFigures& figures) {
  return figures.foreign_processes() ? "no other process computes on it" : "who else uses it is unknown";
}

// "at the power cap of 700 W in 100% of the time; SM clock 1795 MHz on average, 686 W on average"
std::string at_the_cap(const TelemetryFigures& figures, record::Number power_limit_w) {
  std::string text =
      fmt::format("at the power cap{} in {:.0f}% of the time",
                  power_limit_w ? fmt::format(" of {:.0f} W", *power_limit_w) : "", figures.power_capped() * 100);
  if (const auto clock = figures.sm_clock_mhz()) text += fmt::format("; SM clock {:.0f} MHz on average", clock->mean);
  if (const auto power = figures.power_w_within()) text += fmt::format(", {:.0f} W on average", power->mean);
  return text;
}

// Heat, and the hardware's own protection: seen twice they are no accident, however short the window.
std::vector<std::string> slowdowns_of(const TelemetryFigures& figures) {
  std::vector<std::string> found;
  for (const auto& [reason, share] : figures.slowdowns())
    found.push_back(fmt::format("{} held the clocks down in {:.0f}% of the time ({} samples)", reason, share * 100,
                                figures.samples()));
  return found;
}

record::Validity of_clocks(const TelemetryFigures& figures, record::Number power_limit_w) {
  using enum record::ValidityVerdict;
  const std::string to_itself = of_device_to_itself(figures);
  if (figures.samples_within() < fewest_clock_readings)
    return {unknown,
            fmt::format("only {} {} of the clocks within the window, of the {} that are needed; measure longer "
                        "([measure] steps); {}",
                        figures.samples_within(), figures.samples_within() == 1 ? "reading" : "readings",
                        fewest_clock_readings, to_itself)};
  const std::optional<ClockDrift> drift = figures.sm_clock_drift();
  if (!drift) {
    const std::string cap = figures.power_capped() > 0 ? at_the_cap(figures, power_limit_w) + "; " : "";
    return {unknown, figures.sm_clock_mhz()
                         ? fmt::format("{}too few readings of the SM clock within the first or the last third of the "
                                       "window to say whether it is steady; measure longer ([measure] steps); {}",
                                       cap, to_itself)
                         : fmt::format("{}the device does not report its SM clock, so it is not known whether it was "
                                       "steady; {}",
                                       cap, to_itself)};
  }
  if (drift->is_drift)
    return {throttled, fmt::format("the SM clock went from {:.0f} to {:.0f} MHz ({:+.0f}%) while it was measured{}; "
                                   "warm up for longer ([measure] warmup)",
                                   drift->first_mhz, drift->last_mhz, drift->change() * 100,
                                   figures.power_capped() > 0 ? ", " + at_the_cap(figures, power_limit_w) : "")};
  if (figures.power_capped() > 0)
    return {power_limited, fmt::format("{}; the clock is steady; {}", at_the_cap(figures, power_limit_w), to_itself)};
  const std::string clocks =
      figures.throttle() ? fmt::format("nothing held the clocks down in {:.0f}% of the time or more ({} samples)",
                                       throttled_share * 100, figures.samples())
                         : "the device does not report what holds its clocks down";
  return {valid, fmt::format("{}; {}", clocks, to_itself)};
}

record::Validity of_device(const TelemetryFigures* figures, record::Number power_limit_w) {
  using enum record::ValidityVerdict;
  if (!figures || (!figures->throttle() && !figures->foreign_processes()))
    return {unknown, "the device reports neither what holds its clocks down nor who else uses it"};
  std::vector<std::string> found = slowdowns_of(*figures);
  if (const std::uint64_t others = figures->foreign_processes().value_or(0); others > 0) {
    if (figures->power_capped() > 0) found.push_back(at_the_cap(*figures, power_limit_w));
    found.push_back(
        fmt::format("{} other {} on the device", others, others == 1 ? "process computes" : "processes compute"));
    return {contended, fmt::format("{}", fmt::join(found, "; "))};
  }
  if (!found.empty()) return {throttled, fmt::format("{}", fmt::join(found, "; "))};
  return of_clocks(*figures, power_limit_w);
}

}  // namespace

record::Validity validity_of(bool is_cpu, const TelemetryFigures* figures, const Contention& contention,
                             record::Number power_limit_w) {
  return is_cpu ? of_processors(contention) : of_device(figures, power_limit_w);
}

}  // namespace assay::host::telemetry
