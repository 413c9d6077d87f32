// The facts of a machine that matter to a measurement, beside its devices: read from /proc, /sys and the limits of this
// process.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::doctor {

// A process that ran while nobody asked it to.
struct Neighbour {
  std::int32_t pid = 0;
  std::string name;       // as the kernel calls it, at most 15 letters
  double processors = 0;  // of their time, over the window: 1 is one processor
};

// A graphics processor as the PCI bus lists it, whether or not a driver knows it.
struct GpuOnBus {
  std::string address;                         // "0000:18:00.0"
  std::optional<int> link_width, widest_link;  // lanes in use, and that both ends have
  std::optional<int> numa_node;                // nothing where there is one node
};

struct Machine {
  // Processors.
  std::string model;
  std::size_t processors = 0, usable = 0, numa_nodes = 1;  // 0: the kernel does not say
  std::optional<double> quota_cores;
  std::vector<std::pair<std::string, std::size_t>>
      governors;                 // with the number of processors of each; none: no scaling here
  std::string frequency_driver;  // "intel_pstate"
  std::optional<bool> turbo, hyper_threads, numa_balancing;
  bool is_virtual = false;  // a hypervisor runs it
  std::string clock;        // "tsc"
  double clock_ns = 0;      // that one look at the clock takes
  // Who else is here.
  double taken_processors = 0;        // that others used over the window
  std::vector<Neighbour> neighbours;  // the busiest first, at most five
  std::optional<double> load_1min;
  // Memory.
  std::optional<double> memory_total_mib, memory_available_mib, memory_limit_mib, swap_used_mib;
  std::string huge_pages;  // of anonymous memory: "always", "madvise", "never"; "": not known
  std::optional<std::uint64_t> reserved_huge_pages;
  std::optional<double> shared_memory_mib;  // the size of /dev/shm
  // What the kernel allows.
  std::optional<int> ptrace_scope, perf_paranoid;
  std::optional<bool> profiling_for_root_alone;  // counters of NVIDIA's driver
  std::optional<std::uint64_t> open_files;       // that one process may have
  // The driver of NVIDIA GPUs.
  std::string driver;  // "580.95.05"; "": none is loaded
  bool has_nouveau = false;
  std::vector<GpuOnBus> gpus;
  // Where results go.
  std::filesystem::path results;    // the folder, or the nearest one above it that is there
  std::string results_file_system;  // "ext4", "nfs4"
  bool results_writable = false;
  std::optional<double> results_free_mib;

  bool is_root = false;
  std::string system;  // "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
  std::string host;
  // Variables that the environment records (telemetry/recorded_texts), and LD_PRELOAD.
  std::vector<std::pair<std::string, std::string>> variables;
};

struct MachineSource {
  std::filesystem::path root = "/";  // a folder that stands for it, with proc and sys below
  std::filesystem::path results = "results";
  std::chrono::milliseconds window{300};  // over which others are watched, in which this process sleeps
  bool is_here() const { return root == "/"; }
};

// Takes the window, and some milliseconds. What a machine does not report is absent, or empty. Of a folder that stands
// for another machine, what only this one's kernel answers (processors of this process, disk, limits, variables) is
// absent.
Machine look_at_machine(const MachineSource& source);

}  // namespace assay::host::doctor
