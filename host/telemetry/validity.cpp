#include "telemetry/validity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace assay::host::telemetry {
namespace {

record::Validity of_processors(const Contention& contention) {
  if (!contention.others_share && !contention.steal_share)
    return {record::ValidityVerdict::unknown,
            fmt::format("the kernel's account of the processors says nothing of a window of {:.3g} s; measure longer",
                        contention.window_s)};
  std::vector<std::string> found;
  if (contention.others_share.value_or(0) > contended_share)
    found.push_back(fmt::format("other processes took {:.0f}% of the processors", *contention.others_share * 100));
  if (contention.steal_share.value_or(0) > contended_share)
    found.push_back(
        fmt::format("the hypervisor gave {:.0f}% of the processors to other guests", *contention.steal_share * 100));
  if (!found.empty()) return {record::ValidityVerdict::contended, fmt::format("{}", fmt::join(found, "; "))};
  return {record::ValidityVerdict::valid,
          fmt::format("nobody else took more than {:.0f}% of the processors", contended_share * 100)};
}

record::Validity of_device(const TelemetryFigures* figures) {
  if (!figures || (!figures->throttle() && !figures->foreign_processes()))
    return {record::ValidityVerdict::unknown,
            "the device tells neither what holds its clocks down nor who else uses it"};
  std::vector<std::string> found;
  record::ValidityVerdict verdict = record::ValidityVerdict::valid;
  for (const auto& [reason, share] : figures->slowdowns()) {
    if (share < throttled_share) continue;
    verdict = record::ValidityVerdict::throttled;
    found.push_back(
        fmt::format("{} held the clocks down in {:.0f}% of {} samples", reason, share * 100, figures->samples()));
  }
  if (const std::uint64_t others = figures->foreign_processes().value_or(0); others > 0) {
    verdict = record::ValidityVerdict::contended;
    found.push_back(
        fmt::format("{} other {} on the device", others, others == 1 ? "process computes" : "processes compute"));
  }
  if (verdict != record::ValidityVerdict::valid) return {verdict, fmt::format("{}", fmt::join(found, "; "))};
  if (figures->is_shorter_than_a_period())
    return {record::ValidityVerdict::unknown,
            fmt::format("the measured window is shorter than a sampling period ({:.0f} ms); "
                        "measure longer",
                        figures->period_s() * 1e3)};
  const std::string clocks = figures->throttle()
                                 ? fmt::format("nothing held the clocks down in {:.0f}% of {} samples or more",
                                               throttled_share * 100, figures->samples())
                                 : "the device does not tell what holds its clocks down";
  return {record::ValidityVerdict::valid, fmt::format("{}; {}", clocks,
                                                      figures->foreign_processes() ? "no other process computes on it"
                                                                                   : "who else uses it is not told")};
}

}  // namespace

record::Validity validity_of(bool is_cpu, const TelemetryFigures* figures, const Contention& contention) {
  return is_cpu ? of_processors(contention) : of_device(figures);
}

}  // namespace assay::host::telemetry
