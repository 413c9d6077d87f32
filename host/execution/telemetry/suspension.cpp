#include "telemetry/suspension.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>

#include <atomic>
#include <string>
#include <vector>

namespace assay::host::telemetry {
namespace {

std::atomic<std::int64_t> times_continued{0}, times_child_continued{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler adds to it");
void count_continuation(int) { times_continued.fetch_add(1, std::memory_order_relaxed); }
void count_child(int, siginfo_t* info, void*) {
  if (info->si_code == CLD_CONTINUED) times_child_continued.fetch_add(1, std::memory_order_relaxed);
}

bool is_heard_by_nobody(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

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
  sigaction(SIGCHLD, nullptr, &child_before_);
  if (is_heard_by_nobody(child_before_)) {
    struct sigaction of_children {};
    of_children.sa_sigaction = count_child;
    of_children.sa_flags = SA_RESTART | SA_SIGINFO;
    sigaction(SIGCHLD, &of_children, nullptr);
  }
  children_before_ = times_child_continued.load(std::memory_order_relaxed);
  continued_before_ = times_continued.load(std::memory_order_relaxed);
  asleep_before_s_ = seconds_asleep();
}

Suspension SuspensionProbe::end() {
  constexpr double shortest_s = 0.01;  // the two clocks are read one after the other
  Suspension found{.continued = times_continued.load(std::memory_order_relaxed) - continued_before_};
  found.children_continued = times_child_continued.load(std::memory_order_relaxed) - children_before_;
  if (is_heard_by_nobody(child_before_)) sigaction(SIGCHLD, &child_before_, nullptr);
  if (const double asleep_s = seconds_asleep() - asleep_before_s_; asleep_s > shortest_s) found.asleep_s = asleep_s;
  sigaction(SIGCONT, &before_, nullptr);
  return found;
}

std::string text_of(const Suspension& suspension) {
  const auto times = [](std::int64_t count) { return fmt::format("{} {}", count, count == 1 ? "time" : "times"); };
  std::vector<std::string> found;
  if (suspension.continued > 0)
    found.push_back(fmt::format("the process received SIGCONT, which ends a stop, {} while it was measured",
                                times(suspension.continued)));
  if (suspension.children_continued > 0)
    found.push_back(fmt::format("a program that it runs was continued after a stop {} while it was measured",
                                times(suspension.children_continued)));
  if (suspension.asleep_s > 0)
    found.push_back(fmt::format("the machine was suspended for {:.1f} s while it was measured", suspension.asleep_s));
  return found.empty() ? "" : fmt::format("{}; measure again", fmt::join(found, "; "));
}

record::Validity with_suspension(record::Validity validity, const Suspension& suspension) {
  const std::string text = text_of(suspension);
  if (text.empty()) return validity;
  const bool has_reason =
      validity.verdict == record::ValidityVerdict::contended || validity.verdict == record::ValidityVerdict::throttled;
  return {record::ValidityVerdict::contended, text + (has_reason ? "; " + validity.text : std::string())};
}

}  // namespace assay::host::telemetry
