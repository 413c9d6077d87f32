#include "telemetry/contention.hpp"

#include "common/process_tree.hpp"
#include "telemetry/text_files.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace assay::host::telemetry {
namespace {

// Takes the next number off the front; false when there is none.
bool take_number(std::string_view& text, std::uint64_t& number) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return false;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

void add_threads(pid_t process, std::map<pid_t, SchedulerTimes>& threads) {
  std::error_code error;
  const std::filesystem::path folder = "/proc/" + std::to_string(process) + "/task";
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (const auto text = read_text(it->path() / "schedstat"))
      if (const auto times = parse_schedstat(*text)) threads[std::atoi(it->path().filename().c_str())] = *times;
}

std::uint64_t ns_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_usec) * 1000u;
}

ContentionSample sample(const std::string& entry) {
  ContentionSample result;
  const std::set<int> usable = usable_processors();
  if (const auto text = read_text("/proc/stat"))
    for (const auto& [processor, ticks] : parse_proc_stat(*text))
      if (usable.contains(processor)) result.ticks[processor] = ticks;
  add_threads(::getpid(), result.threads);
  // Not from schedstat, which forgets a thread when it ends.
  timespec own{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0)
    result.own_cpu_ns =
        static_cast<std::uint64_t>(own.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(own.tv_nsec);
  for (const pid_t child : descendants_of(::getpid(), ::getppid(), entry)) {
    add_threads(child, result.threads);
    result.own_cpu_ns += static_cast<std::uint64_t>(cpu_seconds_of(child) * 1e9);
  }
  rusage ended{};
  if (::getrusage(RUSAGE_CHILDREN, &ended) == 0) result.own_cpu_ns += ns_of(ended.ru_utime) + ns_of(ended.ru_stime);
  result.time = std::chrono::steady_clock::now();
  return result;
}

double growth(std::uint64_t begin, std::uint64_t end) { return end > begin ? static_cast<double>(end - begin) : 0.0; }

void add_waits(const ContentionSample& begin, const ContentionSample& end, Contention& result) {
  constexpr double wanted_part = 0.05, ran_part = 0.01;
  const double window_ns = result.window_s * 1e9;
  double run_ns = 0, wait_ns = 0, stall_ns = 0;
  std::uint64_t busy = 0;
  for (const auto& [thread, after] : end.threads) {
    const auto found = begin.threads.find(thread);
    const SchedulerTimes before = found == begin.threads.end() ? SchedulerTimes{} : found->second;
    const double ran_ns = growth(before.run_ns, after.run_ns), waited_ns = growth(before.wait_ns, after.wait_ns);
    run_ns += ran_ns;
    wait_ns += waited_ns;
    if (ran_ns + waited_ns < wanted_part * window_ns || ran_ns < ran_part * window_ns) continue;
    ++busy;
    stall_ns += waited_ns;
  }
  if (run_ns + wait_ns <= 0) return;
  result.wait_share = wait_ns / (run_ns + wait_ns);
  result.wanted_s = (run_ns + wait_ns) * 1e-9;
  result.stall_share = std::min(stall_ns / window_ns, 1.0);
  result.busy_threads = busy;
}

}  // namespace

std::map<int, CpuTicks> parse_proc_stat(std::string_view text) {
  std::map<int, CpuTicks> result;
  for_each_line(text, [&result](std::string_view line) {
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] < '0' || line[3] > '9') return;
    line.remove_prefix(3);
    std::uint64_t processor = 0;
    // user nice system idle iowait irq softirq steal; guest time, which follows, is within user and nice already.
    std::array<std::uint64_t, 8> fields{};
    if (!take_number(line, processor)) return;
    for (std::uint64_t& field : fields)
      if (!take_number(line, field)) break;  // old kernels end early
    result[static_cast<int>(processor)] = {fields[0] + fields[1] + fields[2] + fields[5] + fields[6],
                                           fields[3] + fields[4], fields[7]};
  });
  return result;
}

std::optional<SchedulerTimes> parse_schedstat(std::string_view text) {
  SchedulerTimes times;
  if (!take_number(text, times.run_ns) || !take_number(text, times.wait_ns)) return std::nullopt;
  return times;
}

Contention compare(const ContentionSample& begin, const ContentionSample& end, double ticks_per_s) {
  Contention result;
  result.window_s = std::chrono::duration<double>(end.time - begin.time).count();
  result.own_cpu_s = growth(begin.own_cpu_ns, end.own_cpu_ns) * 1e-9;
  if (result.window_s < shortest_window_s) return result;

  constexpr double fewest_stolen_ticks = 5;
  double busy_ticks = 0, idle_ticks = 0, steal_ticks = 0;
  for (const auto& [processor, after] : end.ticks) {
    const auto before = begin.ticks.find(processor);
    if (before == begin.ticks.end()) continue;  // came online in the window
    const double busy = growth(before->second.busy, after.busy), idle = growth(before->second.idle, after.idle);
    const double stolen = growth(before->second.steal, after.steal);
    busy_ticks += busy;
    idle_ticks += idle;
    steal_ticks += stolen;
    if (stolen >= fewest_stolen_ticks)
      result.worst_steal_share = std::max(result.worst_steal_share, stolen / (busy + idle + stolen));
    ++result.processors;
  }
  const double all_ticks = busy_ticks + idle_ticks + steal_ticks;
  if (all_ticks > 0 && ticks_per_s > 0) {
    // Ticks are counted, own time is exact: the difference can come out slightly below zero.
    result.others_share = std::clamp((busy_ticks - result.own_cpu_s * ticks_per_s) / all_ticks, 0.0, 1.0);
    result.steal_share = steal_ticks / all_ticks;
    result.capacity_s = all_ticks / ticks_per_s;
  }
  add_waits(begin, end, result);
  result.attribute_waits(result.wanted_s);
  return result;
}

void Contention::leave_out(double siblings_cpu_s, double siblings_wanted_s) {
  if (others_share) others_share = std::max(0.0, *others_share - siblings_cpu_s / capacity_s);
  attribute_waits(wanted_s + siblings_wanted_s);
}

void Contention::attribute_waits(double wanted_by_case_s) {
  foreign_wait_share.reset(), foreign_stall_share.reset();
  if (!others_share || !wait_share || !stall_share) return;
  const double others_s = *others_share * capacity_s;
  const double queue = static_cast<double>(busy_threads.value_or(0)) / static_cast<double>(processors);
  const double waited_s = *wait_share * wanted_s;
  const double waited_for_own_s = std::max(0.0, 1 - capacity_s / wanted_by_case_s) * wanted_s;
  const double foreign_s =
      std::min(waited_s, std::clamp(waited_s - waited_for_own_s, others_s * queue, others_s * std::max(queue, 1.0)));
  foreign_wait_share = foreign_s / wanted_s;
  // Those that queue behind one another wait at the same time, and hold the step up once.
  foreign_stall_share = waited_s > 0 ? std::min(*stall_share * foreign_s / waited_s, others_s / window_s) : 0.0;
}

std::set<int> usable_processors() {
  std::set<int> result;
  // The kernel refuses a set smaller than its own, whose size it does not report.
  for (int count = 1024; count <= 1 << 20; count *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(count));
    if (!set) return result;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    CPU_ZERO_S(bytes, set);
    const bool filled = ::sched_getaffinity(0, bytes, set) == 0;
    for (int i = 0; filled && i < count; ++i)
      if (CPU_ISSET_S(static_cast<std::size_t>(i), bytes, set)) result.insert(i);
    CPU_FREE(set);
    if (filled) break;
  }
  return result;
}

void ContentionProbe::begin() { begin_ = sample(entry_); }

Contention ContentionProbe::end() const {
  return compare(begin_, sample(entry_), static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace assay::host::telemetry
