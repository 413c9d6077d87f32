#include "telemetry/suspension.hpp"

#include <fmt/format.h>
#include <time.h>

#include <atomic>
#include <string>

namespace assay::host::telemetry {
namespace {

std::atomic<std::int64_t> times_continued{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler adds to it");
void count_continuation(int) { times_continued.fetch_add(1, std::memory_order_relaxed); }

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
// The clock with the time of a suspended machine is ahead of the one without.
double seconds_asleep() { return seconds_of(CLOCK_BOOTTIME) - seconds_of(CLOCK_MONOTONIC); }

}  // namespace

void SuspensionProbe::begin() {
  struct sigaction action {};
  action.sa_handler = count_continuation;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &action, &before_);
  continued_before_ = times_continued.load(std::memory_order_relaxed);
  asleep_before_s_ = seconds_asleep();
}

Suspension SuspensionProbe::end() {
  constexpr double shortest_s = 0.01;  // the two clocks are read one after the other
  Suspension found{.continued = times_continued.load(std::memory_order_relaxed) - continued_before_};
  if (const double asleep_s = seconds_asleep() - asleep_before_s_; asleep_s > shortest_s) found.asleep_s = asleep_s;
  sigaction(SIGCONT, &before_, nullptr);
  return found;
}

record::Validity with_suspension(record::Validity validity, const Suspension& suspension) {
  std::string text;
  if (suspension.continued > 0)
    text = fmt::format("the process received SIGCONT, which ends a stop, {} {} while it was measured",
                       suspension.continued, suspension.continued == 1 ? "time" : "times");
  if (suspension.asleep_s > 0)
    text += fmt::format("{}the machine was suspended for {:.1f} s while it was measured", text.empty() ? "" : "; ",
                        suspension.asleep_s);
  if (text.empty()) return validity;
  const bool has_reason =
      validity.verdict == record::ValidityVerdict::contended || validity.verdict == record::ValidityVerdict::throttled;
  return {record::ValidityVerdict::contended,
          text + "; measure again" + (has_reason ? "; " + validity.text : std::string())};
}

}  // namespace assay::host::telemetry
