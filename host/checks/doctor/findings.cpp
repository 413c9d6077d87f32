#include "doctor/findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "common/device_kinds.hpp"
#include "plugin/device_words.hpp"
#include "telemetry/contention.hpp"

namespace assay::host::doctor {
namespace {

using Texts = std::vector<std::string>;
constexpr double gib_in_mib = 1024;

Texts when(bool is_so, std::string text) { return is_so ? Texts{std::move(text)} : Texts{}; }

// A text for each GPU that `of` has one for.
template <class Of>
Texts of_each_gpu(const Facts& facts, Of&& of) {
  Texts texts;
  if (const DeviceKind* cuda = facts.kind("cuda"))
    for (const DeviceState& device : cuda->devices)
      if (std::string text = of(device); !text.empty())
        texts.push_back(fmt::format("GPU {}{}: {}", device.ordinal,
                                    device.name.empty() ? "" : fmt::format(" ({})", device.name), text));
  return texts;
}

std::size_t usable_gpus(const Facts& facts) {
  const DeviceKind* cuda = facts.kind("cuda");
  if (!cuda) return 0;
  return static_cast<std::size_t>(std::count_if(cuda->devices.begin(), cuda->devices.end(),
                                                [](const DeviceState& device) { return device.problem.empty(); }));
}

bool driver_is_old(const Machine& m) { return !m.driver.empty() && std::atoi(m.driver.c_str()) < least_driver; }

Texts no_device(const Facts& f) {
  return when(f.devices_asked && f.auto_device().empty(), "no device of any kind can be used");
}

Texts driver_missing(const Facts& f) {
  const Machine& m = f.machine;
  if (m.gpus.empty()) return {};
  return when(m.driver.empty(), fmt::format("{} on the PCI bus ({}), and no driver of NVIDIA is loaded{}",
                                            m.gpus.size() == 1 ? "a GPU of NVIDIA is"
                                                               : fmt::format("{} GPUs of NVIDIA are", m.gpus.size()),
                                            m.gpus.front().address, m.has_nouveau ? "; nouveau holds it" : ""));
}

Texts driver_old(const Facts& f) {
  return when(driver_is_old(f.machine),
              fmt::format("the driver is {}, and CUDA 13 needs {} or later", f.machine.driver, least_driver));
}

// What a missing or an old driver explains is not reported a second time.
Texts gpu_unusable(const Facts& f) {
  const DeviceKind* cuda = f.kind("cuda");
  if (!cuda || f.machine.driver.empty() || driver_is_old(f.machine)) return {};
  Texts texts = when(!cuda->problem.empty(), cuda->problem);
  for (std::string& text : of_each_gpu(f, [](const DeviceState& device) { return device.problem; }))
    texts.push_back(std::move(text));
  return texts;
}

Texts backend_missing(const Facts& f) {
  return when(f.devices_asked && !f.machine.driver.empty() && !f.kind("cuda"),
              fmt::format("driver {} is loaded, and this assay was built without the CUDA device", f.machine.driver));
}

Texts cpu_unusable(const Facts& f) {
  const DeviceKind* cpu = f.kind("cpu");
  if (!cpu || cpu->is_usable()) return {};
  return {cpu->devices.empty() ? cpu->problem : cpu->devices.front().problem};
}

Texts gpu_shared(const Facts& f) {
  return of_each_gpu(f, [](const DeviceState& d) {
    const std::uint64_t others = d.foreign_processes.value_or(0);
    return others == 0
               ? std::string()
               : fmt::format("{} other {} it{}", others, others == 1 ? "process uses" : "processes use",
                             d.foreign_memory_mib ? fmt::format(", with {:.0f} MiB", *d.foreign_memory_mib) : "");
  });
}

Texts gpu_held(const Facts& f) {
  return of_each_gpu(f, [](const DeviceState& d) {
    return d.held_by.empty() ? std::string()
                             : fmt::format("its clocks are held down by {}", fmt::join(d.held_by, ", "));
  });
}

Texts gpu_clocks(const Facts& f) {
  return of_each_gpu(f, [](const DeviceState& d) {
    return d.application_sm_clock_mhz && d.max_sm_clock_mhz && *d.application_sm_clock_mhz < *d.max_sm_clock_mhz
               ? fmt::format("its application clock is {:.0f} MHz, and it could have {:.0f} MHz",
                             *d.application_sm_clock_mhz, *d.max_sm_clock_mhz)
               : std::string();
  });
}

Texts gpu_power(const Facts& f) {
  return of_each_gpu(f, [](const DeviceState& d) {
    return d.power_limit_w && d.default_power_limit_w && *d.power_limit_w < *d.default_power_limit_w - 0.5
               ? fmt::format("its power limit is {:.0f} W in place of {:.0f} W", *d.power_limit_w,
                             *d.default_power_limit_w)
               : std::string();
  });
}

Texts gpu_part(const Facts& f) {
  return of_each_gpu(f, [](const DeviceState& d) {
    return d.uuid.starts_with("MIG-") ? std::string("it is a part of a GPU (MIG)") : std::string();
  });
}

Texts gpu_link(const Facts& f) {
  Texts texts;
  for (const GpuOnBus& gpu : f.machine.gpus)
    if (gpu.link_width && gpu.widest_link && *gpu.link_width > 0 && *gpu.link_width < *gpu.widest_link)
      texts.push_back(
          fmt::format("the GPU at {} has {} of {} PCI lanes", gpu.address, *gpu.link_width, *gpu.widest_link));
  return texts;
}

Texts no_nccl(const Facts& f) {
  const bool has_nccl = std::find(f.communicators.begin(), f.communicators.end(), "nccl") != f.communicators.end();
  return when(usable_gpus(f) > 1 && !has_nccl,
              fmt::format("{} GPUs are here, and no communicator of NCCL is installed", usable_gpus(f)));
}

Texts small_shared_memory(const Facts& f) {
  const auto size = f.machine.shared_memory_mib;
  return when(usable_gpus(f) > 1 && size && *size < gib_in_mib,
              fmt::format("/dev/shm has {:.0f} MiB", size.value_or(0)));
}

Texts governor(const Facts& f) {
  Texts wrong;
  for (const auto& [name, count] : f.machine.governors)
    if (name != "performance")
      wrong.push_back(fmt::format(
          "{} of {} processors {} governed by '{}'{}", count, f.machine.processors, count == 1 ? "is" : "are", name,
          f.machine.frequency_driver.empty() ? "" : fmt::format(" ({})", f.machine.frequency_driver)));
  return wrong;
}

Texts no_frequency(const Facts& f) {
  return when(f.machine.governors.empty() && f.machine.processors > 0,
              fmt::format("the kernel reports neither the governor nor the clock speeds of the processors{}",
                          f.machine.is_virtual ? ": this is a virtual machine" : ""));
}

Texts turbo(const Facts& f) { return when(f.machine.turbo.value_or(false), "turbo is on"); }

Texts quota(const Facts& f) {
  const Machine& m = f.machine;
  const std::size_t processors = m.usable > 0 ? m.usable : m.processors;
  return when(m.quota_cores && processors > 0 && *m.quota_cores < static_cast<double>(processors),
              fmt::format("the control group allows the time of {:.3g} processors, and {} are in use",
                          m.quota_cores.value_or(0), processors));
}

Texts taken(const Facts& f) {
  const Machine& m = f.machine;
  const double processors = static_cast<double>(std::max<std::size_t>(1, m.usable > 0 ? m.usable : m.processors));
  if (m.taken_processors <= telemetry::contended_share * processors) return {};
  Texts names;
  for (const Neighbour& n : m.neighbours)
    names.push_back(fmt::format("{} ({}, {:.0f}%)", n.name, n.pid, n.processors * 100));
  return {fmt::format("others use {:.1f} of {:.0f} processors{}", m.taken_processors, processors,
                      names.empty() ? "" : fmt::format(": {}", fmt::join(names, ", ")))};
}

Texts slow_clock(const Facts& f) {
  const Machine& m = f.machine;
  const bool is_slow_kind = m.clock == "hpet" || m.clock == "acpi_pm" || m.clock == "jiffies";
  return when(is_slow_kind || m.clock_ns > 200,
              fmt::format("the kernel's clock is '{}'{}", m.clock,
                          m.clock_ns > 0 ? fmt::format(", and reading it takes {:.0f} ns", m.clock_ns) : ""));
}

// Later versions multiply bf16 faster with AMX; with AVX-512 alone they are not faster.
Texts old_onednn(const Facts& f) {
  const DeviceKind* cpu = f.kind("cpu");
  if (!cpu || !cpu->is_usable()) return {};
  const std::string& libraries = cpu->devices.front().libraries;
  return when(libraries.starts_with("oneDNN 2.") && libraries.find("core_amx") != std::string::npos,
              fmt::format("{} makes the products of a processor with AMX", libraries.substr(0, libraries.find(';'))));
}

Texts balancing(const Facts& f) {
  return when(f.machine.numa_nodes > 1 && f.machine.numa_balancing.value_or(false),
              fmt::format("the kernel balances pages over the {} nodes", f.machine.numa_nodes));
}

Texts little_memory(const Facts& f) {
  const auto available = f.machine.memory_available_mib, total = f.machine.memory_total_mib;
  return when(available && total && (*available < gib_in_mib || *available < 0.1 * *total),
              fmt::format("{:.0f} of {:.0f} MiB are available", available.value_or(0), total.value_or(0)));
}

Texts memory_limit(const Facts& f) {
  const auto limit = f.machine.memory_limit_mib;
  return when(limit.has_value(), fmt::format("the control group allows {:.0f} MiB of memory", limit.value_or(0)));
}

Texts swap(const Facts& f) {
  const double used = f.machine.swap_used_mib.value_or(0);
  return when(used > 256, fmt::format("{:.0f} MiB lie in swap", used));
}

Texts huge_pages(const Facts& f) {
  return when(f.machine.huge_pages == "never", "transparent huge pages are off ('never')");
}

Texts unwritable(const Facts& f) {
  const Machine& m = f.machine;
  return when(!m.results.empty() && !m.results_writable, fmt::format("{} cannot be written to", m.results.string()));
}

Texts little_disk(const Facts& f) {
  const auto left = f.machine.results_free_mib;
  return when(left && *left < gib_in_mib,
              fmt::format("{:.0f} MiB are free where results go ({})", left.value_or(0), f.machine.results.string()));
}

Texts network_disk(const Facts& f) {
  const std::string& type = f.machine.results_file_system;
  constexpr const char* remote[] = {"nfs", "lustre", "gpfs", "cifs", "beegfs", "ceph", "fuse.", "9p", "afs"};
  return when(
      std::any_of(std::begin(remote), std::end(remote), [&](const char* kind) { return type.starts_with(kind); }),
      fmt::format("results go to a file system of the network ('{}')", type));
}

Texts attaching(const Facts& f) {
  const Machine& m = f.machine;
  return when(!m.is_root && m.ptrace_scope.value_or(0) > 0,
              fmt::format("kernel.yama.ptrace_scope is {}", m.ptrace_scope.value_or(0)));
}

Texts perf(const Facts& f) {
  const Machine& m = f.machine;
  return when(!m.is_root && m.perf_paranoid.value_or(0) > 2,
              fmt::format("kernel.perf_event_paranoid is {}", m.perf_paranoid.value_or(0)));
}

Texts counters(const Facts& f) {
  return when(!f.machine.is_root && f.machine.profiling_for_root_alone.value_or(false),
              "the driver keeps the GPU's counters for root (RmProfilingAdminOnly: 1)");
}

Texts few_files(const Facts& f) {
  const auto files = f.machine.open_files;
  return when(files && *files < 1024, fmt::format("a process may open {} files", files.value_or(0)));
}

// Those of the named variables that are set.
Texts set_to(const Facts& f, std::string_view name, bool (*counts)(const std::string&)) {
  for (const auto& [key, value] : f.machine.variables)
    if (key == name && counts(value)) return {fmt::format("{}={}", key, value)};
  return {};
}
bool is_on(const std::string& value) { return !value.empty() && value != "0"; }
bool is_loud(const std::string& value) { return value == "INFO" || value == "TRACE"; }

Texts blocking(const Facts& f) { return set_to(f, "CUDA_LAUNCH_BLOCKING", is_on); }
Texts tf32(const Facts& f) {
  return set_to(f, "NVIDIA_TF32_OVERRIDE", [](const std::string& value) { return !value.empty(); });
}
Texts loud(const Facts& f) {
  Texts texts;
  for (const char* name : {"ONEDNN_VERBOSE", "DNNL_VERBOSE", "CUBLASLT_LOG_LEVEL", "CUDNN_LOGLEVEL_DBG"})
    for (std::string& text : set_to(f, name, is_on)) texts.push_back(std::move(text));
  for (std::string& text : set_to(f, "NCCL_DEBUG", is_loud)) texts.push_back(std::move(text));
  return texts;
}
Texts preloaded(const Facts& f) { return set_to(f, "LD_PRELOAD", is_on); }
Texts hidden(const Facts& f) {
  return set_to(f, "CUDA_VISIBLE_DEVICES", [](const std::string&) { return true; });
}
Texts threads(const Facts& f) { return set_to(f, "OMP_NUM_THREADS", is_on); }

constexpr auto error = Severity::error;
constexpr auto warning = Severity::warning;
constexpr auto note = Severity::note;

constexpr FindingRow rows[] = {
    {"device.none", error, "no case runs", "install a device backend, or set ASSAY_DEVICE_PATH to the folder of one",
     no_device},
    {"device.cpu", error, "cases on the CPU fail", "install what the text names; docs/install.md lists the libraries",
     cpu_unusable},
    {"gpu.driver_missing", error, "cases on cuda are unsupported, and device = \"auto\" is the CPU",
     "install NVIDIA's driver, 580 or later, and load it: modprobe nvidia; nvidia-smi must list the GPU",
     driver_missing},
    {"gpu.driver_old", error, "cases on cuda are unsupported, and device = \"auto\" is the CPU",
     "install NVIDIA's driver, 580 or later", driver_old},
    {"gpu.unusable", error, "cases on cuda are unsupported", "do what the text names; nvidia-smi shows the GPU's state",
     gpu_unusable},
    {"gpu.backend_missing", warning, "every case runs on the CPU",
     "build with nvcc 13 and the libraries that docs/install.md lists (ASSAY_CUDA=ON reports what is missing)",
     backend_missing},
    {"gpu.shared", warning, "steps are longer and scatter; records say contended",
     "wait for the others, or give cases another GPU (CUDA_VISIBLE_DEVICES)", gpu_shared},
    {"gpu.held", warning, "steps are longer than at its normal clocks",
     "let it cool, reset lowered clocks (nvidia-smi -rac, -rgc), and look for what the text names", gpu_held},
    {"gpu.power", warning, "steps at the power cap are longer than on a GPU of this kind elsewhere",
     "nvidia-smi -pl WATTS sets the limit; a record has the one in force", gpu_power},
    {"gpu.link", warning, "copies between host and device take longer than the slot allows",
     "seat the card in a slot with all lanes, or look in the firmware for the slot's bifurcation", gpu_link},
    {"gpu.clocks", note, "these clocks limit a step", "nvidia-smi -rac restores the default clocks", gpu_clocks},
    {"gpu.part", note, "figures are those of the part, and its neighbours share power and memory's bandwidth with it",
     "compare it only with parts of the same kind", gpu_part},
    {"comm.nccl", warning, "cases on several GPUs are unsupported",
     "install NCCL (libnccl2, or Python's nvidia-nccl-cu13) and build again", no_nccl},
    {"comm.shared_memory", warning, "NCCL on one machine fails, or falls back to slower ways",
     "in a container: --shm-size=8g, or --ipc=host", small_shared_memory},
    {"cpu.governor", warning, "clocks follow the load: first steps are slow, and steps scatter",
     "cpupower frequency-set -g performance (as root)", governor},
    {"cpu.quota", warning, "threads stand still for the rest of each period of 100 ms once the time is used up",
     "[run] threads = the number of processors that the group allows, or raise its limit (docker: --cpus)", quota},
    {"cpu.neighbours", warning, "steps are longer and scatter; records say contended",
     "end them, or bind them to other processors; `assay ab` measures in turns beside what cannot be ended", taken},
    {"cpu.clock", warning, "each reading of the clock is part of what it measures",
     "clocksource=tsc on the kernel's command line, where the processor's counter is steady", slow_clock},
    {"cpu.frequency", note, "no record shows a change of the clocks", "ask who runs the host machine", no_frequency},
    {"cpu.turbo", note, "clocks depend on heat and on how many processors are busy",
     "for figures of other days: echo 0 > /sys/devices/system/cpu/cpufreq/boost, or 1 > .../intel_pstate/no_turbo",
     turbo},
    {"cpu.onednn", note, "bf16 products leave a part of AMX unused",
     "scripts/build_onednn builds a later one, which the next build of assay takes", old_onednn},
    {"cpu.numa_balancing", note, "pages move while a step runs", "sysctl kernel.numa_balancing=0 (as root)", balancing},
    {"memory.low", warning, "cases end as oom, or the kernel reclaims pages while they are measured",
     "end what holds memory; `assay plan` predicts what a case takes", little_memory},
    {"memory.swap", note, "pages that a step needs may have to return from the disk",
     "end what fills the memory, then swapoff -a && swapon -a (as root)", swap},
    {"memory.limit", note, "a case that needs more ends as oom", "raise it (docker: --memory), or give the case less",
     memory_limit},
    {"memory.huge_pages", note, "large tensors on the CPU lie in small pages, so reading and writing them is slower",
     "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)", huge_pages},
    {"disk.unwritable", error, "no run can begin", "give another folder by --output, or the right to write there",
     unwritable},
    {"disk.low", warning, "a run ends when the disk is full", "make room; `assay plan` predicts what a run writes",
     little_disk},
    {"disk.network", note, "records are as safe as the server; data sets are read over the network",
     "[output] dir on a local disk; data_dir likewise", network_disk},
    {"limits.open_files", warning, "cases with many ranks fail to start", "ulimit -n 4096", few_files},
    {"limits.ptrace", note, "only root can attach a debugger to a worker",
     "sysctl kernel.yama.ptrace_scope=0 (as root) while debugging", attaching},
    {"limits.perf", note, "nsys samples no processor ([profile] nsys); nothing that assay measures needs it",
     "sysctl kernel.perf_event_paranoid=2 (as root)", perf},
    {"limits.counters", note, "ncu reads no counters ([profile] ncu); the kernels that assay traces need none",
     "NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia, then load it again", counters},
    {"variables.blocking", warning, "each kernel launch waits: steps are not those of training",
     "unset CUDA_LAUNCH_BLOCKING", blocking},
    {"variables.loud", warning, "libraries write while they are measured", "unset it", loud},
    {"variables.tf32", note, "products use another arithmetic than [workload.params] states",
     "unset NVIDIA_TF32_OVERRIDE", tf32},
    {"variables.preload", note, "every worker loads an additional library", "unset LD_PRELOAD", preloaded},
    {"variables.devices", note, "assay sees only these GPUs, and renumbers them", "unset CUDA_VISIBLE_DEVICES", hidden},
    {"variables.threads", note, "it sets the number of threads if [run] threads does not",
     "unset OMP_NUM_THREADS, or write [run] threads", threads},
};

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: break;
  }
  return "error";
}

const DeviceKind* Facts::kind(std::string_view name) const {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [name](const DeviceKind& each) { return each.kind == name; });
  return found == devices.end() ? nullptr : &*found;
}

std::string Facts::auto_device() const {
  std::vector<std::string> others;
  for (const DeviceKind& each : devices)
    if (!kind_of_device(each.kind)) others.push_back(each.kind);
  for (const std::string& each : plugin::kinds_for_auto(others))
    if (const DeviceKind* found = kind(each); found && found->is_usable()) return each;
  return "";
}

std::span<const FindingRow> all_findings() { return rows; }

std::vector<Finding> findings_of(const Facts& facts) {
  std::vector<Finding> found;
  for (const FindingRow& row : rows)
    for (std::string& what : row.find(facts)) found.push_back({&row, std::move(what)});
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding& a, const Finding& b) { return a.row->severity > b.row->severity; });
  return found;
}

}  // namespace assay::host::doctor
