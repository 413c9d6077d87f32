#include "doctor/machine.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/files.hpp"
#include "doctor/kernel_files.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/environment.hpp"
#include "telemetry/processors_left.hpp"
#include "telemetry/text_files.hpp"

namespace assay::host::doctor {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using telemetry::read_text;

constexpr double mib = 1048576.0;

std::optional<double> number_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}
std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// What the environment of a run records, in the words here.
void add_environment(const fs::path& root, Machine& machine) {
  telemetry::EnvironmentSource source;
  source.root = root;
  const Json environment = telemetry::capture_environment(source);
  const Json &cpu = environment["cpu"], &memory = environment["memory"], &os = environment["os"];
  machine.model = text_at(cpu, "model");
  machine.numa_nodes = static_cast<std::size_t>(number_at(cpu, "numa_nodes").value_or(1));
  machine.quota_cores = number_at(cpu, "quota_cores");
  if (const std::string turbo = text_at(cpu, "turbo"); !turbo.empty()) machine.turbo = turbo == "on";
  machine.memory_total_mib = number_at(memory, "total_mib");
  machine.memory_available_mib = number_at(memory, "available_mib");
  machine.memory_limit_mib = number_at(memory, "cgroup_limit_mib");
  machine.system = text_at(os, "distribution");
  if (environment.contains("gpu")) machine.driver = text_at(environment["gpu"], "driver");
  if (const auto loads = environment.find("load_average"); loads != environment.end())
    machine.load_1min = loads->front().get<double>();
  if (root == "/") {
    machine.usable = static_cast<std::size_t>(number_at(cpu, "usable_cores").value_or(0));
    machine.host = text_at(os, "hostname");
    for (const auto& [name, value] : environment["variables"].items())
      machine.variables.emplace_back(name, value.get<std::string>());
    machine.system += (machine.system.empty() ? "" : ", ") + text_at(os, "kernel");
  }
}

void add_processors(const fs::path& root, Machine& machine) {
  const fs::path cpus = root / "sys/devices/system/cpu";
  std::map<std::string, std::size_t> governors;
  std::error_code error;
  for (fs::directory_iterator it(cpus, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.size() < 4 || !name.starts_with("cpu") || name.find_first_not_of("0123456789", 3) != std::string::npos)
      continue;
    ++machine.processors;
    if (const std::string governor = word_in(it->path() / "cpufreq/scaling_governor"); !governor.empty())
      ++governors[governor];
  }
  machine.governors.assign(governors.begin(), governors.end());
  machine.frequency_driver = word_in(cpus / "cpu0/cpufreq/scaling_driver");
  if (const auto active = number_in_file(cpus / "smt/active")) machine.hyper_threads = *active != 0;
  if (const auto balancing = number_in_file(root / "proc/sys/kernel/numa_balancing"))
    machine.numa_balancing = *balancing != 0;
  telemetry::for_each_line(read_text(root / "proc/cpuinfo").value_or(""), [&](std::string_view line) {
    if (line.starts_with("flags") && fmt::format("{} ", line).find(" hypervisor ") != std::string::npos)
      machine.is_virtual = true;
  });
  machine.clock = word_in(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
}

double ns_of_a_look_at_the_clock() {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    constexpr int looks = 1000;
    const auto begin = Clock::now();
    auto last = begin;
    for (int i = 0; i < looks; ++i) last = Clock::now();
    best = std::min(best, std::chrono::duration<double, std::nano>(last - begin).count() / looks);
  }
  return best;
}

void add_neighbours(const MachineSource& source, Machine& machine) {
  const fs::path proc = source.root / "proc";
  const auto ticks = [&] {
    auto all = telemetry::parse_proc_stat(read_text(proc / "stat").value_or(""));
    if (source.is_here()) {
      const std::set<int> usable = telemetry::usable_processors();
      std::erase_if(all, [&](const auto& each) { return !usable.contains(each.first); });
    }
    return all;
  };
  const auto begin_ticks = ticks();
  const auto begin = ticks_of_processes(proc);
  const auto begin_time = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(source.window);
  const double passed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_time).count();
  machine.taken_processors = telemetry::taken_processors(begin_ticks, ticks());
  machine.neighbours =
      busiest(begin, ticks_of_processes(proc), ::getpid(), passed_s * static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

void add_memory(const MachineSource& source, Machine& machine) {
  const std::string info = read_text(source.root / "proc/meminfo").value_or("");
  const auto swap = mib_of(info, "SwapTotal"), free = mib_of(info, "SwapFree");
  if (swap && free) machine.swap_used_mib = std::max(0.0, *swap - *free);
  machine.huge_pages = chosen_word(word_in(source.root / "sys/kernel/mm/transparent_hugepage/enabled"));
  if (const auto pages = number_in_file(source.root / "proc/sys/vm/nr_hugepages"))
    machine.reserved_huge_pages = static_cast<std::uint64_t>(std::max<std::int64_t>(0, *pages));
  struct statvfs shm {};
  if (source.is_here() && ::statvfs("/dev/shm", &shm) == 0)
    machine.shared_memory_mib = static_cast<double>(shm.f_blocks) * static_cast<double>(shm.f_frsize) / mib;
}

void add_limits(const MachineSource& source, Machine& machine) {
  const auto as_int = [&](const char* file) -> std::optional<int> {
    const auto number = number_in_file(source.root / file);
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
  };
  machine.ptrace_scope = as_int("proc/sys/kernel/yama/ptrace_scope");
  machine.perf_paranoid = as_int("proc/sys/kernel/perf_event_paranoid");
  telemetry::for_each_line(read_text(source.root / "proc/driver/nvidia/params").value_or(""),
                           [&](std::string_view line) {
                             if (line.starts_with("RmProfilingAdminOnly:"))
                               machine.profiling_for_root_alone = line.find('1') != line.npos;
                           });
  struct rlimit files {};
  if (source.is_here() && ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
    machine.open_files = files.rlim_cur;
}

void add_gpus(const fs::path& root, Machine& machine) {
  machine.gpus = gpus_on_bus(root / "sys");
  telemetry::for_each_line(read_text(root / "proc/modules").value_or(""), [&](std::string_view line) {
    if (line.starts_with("nouveau ")) machine.has_nouveau = true;
  });
}

// Looks at the folder, or the nearest one above it that is there.
void add_results(const MachineSource& source, Machine& machine) {
  std::error_code error;
  fs::path folder = fs::absolute(source.results, error).lexically_normal();
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  machine.results = folder;
  machine.results_writable = fs::is_directory(folder, error) && ::access(folder.c_str(), W_OK | X_OK) == 0;
  if (const auto bytes = free_bytes(folder)) machine.results_free_mib = static_cast<double>(*bytes) / mib;
  machine.results_file_system =
      file_system_of(read_text(source.root / "proc/self/mounts").value_or(""), fs::weakly_canonical(folder, error));
}

}  // namespace

Machine look_at_machine(const MachineSource& source) {
  Machine machine;
  add_environment(source.root, machine);
  add_processors(source.root, machine);
  add_memory(source, machine);
  add_limits(source, machine);
  add_gpus(source.root, machine);
  if (source.is_here()) {
    add_results(source, machine);
    machine.is_root = ::geteuid() == 0;
    machine.clock_ns = ns_of_a_look_at_the_clock();
  }
  add_neighbours(source, machine);
  return machine;
}

}  // namespace assay::host::doctor
