// Whether a measurement had the processor to itself: the share of CPU time that others took over a window.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace assay::host::telemetry {

// One processor's line of /proc/stat, in ticks since boot.
struct CpuTicks {
  std::uint64_t busy = 0;   // user, nice, system, irq, softirq
  std::uint64_t idle = 0;   // idle, iowait
  std::uint64_t steal = 0;  // ran another guest
};
// By processor number; the sum line and everything else is left out.
std::map<int, CpuTicks> parse_proc_stat(std::string_view text);

// A thread's schedstat: time on a processor, and time spent ready but waiting for one.
struct SchedulerTimes {
  std::uint64_t run_ns = 0;
  std::uint64_t wait_ns = 0;
};
std::optional<SchedulerTimes> parse_schedstat(std::string_view text);

// What was known at one end of a window.
struct ContentionSample {
  std::map<int, CpuTicks> ticks;  // of the processors this process may use
  std::uint64_t own_cpu_ns = 0;   // of all its threads, ended ones too
  SchedulerTimes scheduler;       // of its living threads
  std::chrono::steady_clock::time_point time{};
};

// Shares are of all the time of the processors this process may use, over the window; absent where the kernel does not
// tell, or where the window is too short for the kernel's ticks (below 0.2 s).
struct Contention {
  std::optional<double> others_share;  // other processes
  std::optional<double> steal_share;   // the hypervisor gave it to another guest
  std::optional<double> wait_share;    // of the time its threads wanted to run: time they waited instead
  double window_s = 0;
  double own_cpu_s = 0;
  double capacity_s = 0;  // of the processors over the window; 0 where others_share is absent

  // Of the time of other processes, this much was sibling ranks of the same case.
  void leave_out(double siblings_cpu_s);
};
Contention compare(const ContentionSample& begin, const ContentionSample& end, double ticks_per_s);

// Above this share of the processors others count.
inline constexpr double contended_share = 0.05;

// begin() and end() read a few small files each: outside the measured window, not within it.
class ContentionProbe {
 public:
  void begin();
  Contention end() const;

 private:
  ContentionSample begin_;
};

// The processors that this process may use.
std::set<int> usable_processors();

}  // namespace assay::host::telemetry
