// Whether a measurement had the processor to itself: the share of CPU time that others took over a window.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
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
  // Of all its threads, ended ones too, and of the processes that it has started.
  std::uint64_t own_cpu_ns = 0;
  std::map<pid_t, SchedulerTimes> threads;  // the living ones, of those processes too
  std::chrono::steady_clock::time_point time{};
};

// Shares are of all the time of the processors this process may use, over the window; absent where the kernel does not
// tell, or where the window is too short for the kernel's ticks.
inline constexpr double shortest_window_s = 0.2;
struct Contention {
  std::optional<double> others_share;  // other processes
  std::optional<double> steal_share;   // the hypervisor gave it to another guest
  std::optional<double> wait_share;    // of the time its threads wanted to run: time they waited instead
  // Of the window: time in which one of its busy threads waited for a processor, added up over them, at most 1. A step
  // that is shared out evenly among the threads ends with the last of them, and so loses up to this share: two waiting
  // halves of 64 threads are 3% of the machine, and can be half of the step.
  std::optional<double> stall_share;
  // Threads that wanted to run for a twentieth of the window or more, and ran for a hundredth. Others may wait: a step
  // does not wait for them.
  std::optional<std::uint64_t> busy_threads;
  // Of wait_share and stall_share, what the time that others had on the processors explains.
  std::optional<double> foreign_wait_share, foreign_stall_share;
  // Of the time of the processor that the hypervisor gave away most of, where that was five ticks or more.
  double worst_steal_share = 0;
  std::size_t processors = 0;
  double window_s = 0;
  double own_cpu_s = 0;
  double capacity_s = 0;  // of the processors over the window; 0 where others_share is absent
  double wanted_s = 0;    // its threads ran or waited, added up; 0 where wait_share is absent

  // Of the time of other processes, this much was sibling ranks of the same case, whose threads ran or waited so long.
  void leave_out(double siblings_cpu_s, double siblings_wanted_s);

 private:
  friend Contention compare(const ContentionSample& begin, const ContentionSample& end, double ticks_per_s);
  // Threads of one case wait for one another where more of them want to run than there are processors: that is how it
  // runs, and no disturbance. What they waited beyond that, they waited for others, as far as these ran: a second of
  // theirs keeps those waiting that queue on its processor, and each for a second at most. It may have hit this rank
  // alone, and counts at least as it hits the average thread. Absent if it is unknown what others had.
  void attribute_waits(double wanted_by_case_s);
};
Contention compare(const ContentionSample& begin, const ContentionSample& end, double ticks_per_s);

// Above this share of the processors others count.
inline constexpr double contended_share = 0.05;

// begin() and end() read a few small files each: outside the measured window, not within it.
class ContentionProbe {
 public:
  // `entry`: what stands in the environment of all processes that this one has started ("NAME=value"), by which those
  // are found whose parent has ended; "": they are not looked for.
  explicit ContentionProbe(std::string entry = {}) : entry_(std::move(entry)) {}
  void begin();
  Contention end() const;

 private:
  std::string entry_;
  ContentionSample begin_;
};

// The processors that this process may use.
std::set<int> usable_processors();

}  // namespace assay::host::telemetry
