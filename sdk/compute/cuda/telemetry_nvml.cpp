#include "telemetry_nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>
#include <assay/plugin.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace assay::cuda {
namespace {

constexpr double longest_averaging_s = 1.0;  // nvmlDeviceGetUtilizationRates: over 1/6 s to 1 s, by the GPU's model

constexpr std::array<std::pair<unsigned long long, std::uint64_t>, 9> reasons{
    {{nvml::reason_idle, ASSAY_THROTTLE_IDLE},
     {nvml::reason_application_clocks, ASSAY_THROTTLE_APPLICATION_CLOCKS},
     {nvml::reason_power_cap, ASSAY_THROTTLE_POWER_CAP},
     {nvml::reason_hw_slowdown, ASSAY_THROTTLE_HW_SLOWDOWN},
     {nvml::reason_sync_boost, ASSAY_THROTTLE_SYNC_BOOST},
     {nvml::reason_thermal, ASSAY_THROTTLE_THERMAL},
     {nvml::reason_hw_thermal, ASSAY_THROTTLE_HW_THERMAL},
     {nvml::reason_power_brake, ASSAY_THROTTLE_POWER_BRAKE},
     {nvml::reason_display_clocks, ASSAY_THROTTLE_DISPLAY_CLOCKS}}};

template <class Function>
void find(void* library, Function& out, const char* name, const char* name_before = nullptr) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  if (!out && name_before) out = reinterpret_cast<Function>(dlsym(library, name_before));
}

// 0 where it has none, or is gone.
unsigned parent_of(unsigned id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  // Behind the name, which may have anything in it, and the state.
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 4 > stat.size()
             ? 0
             : static_cast<unsigned>(std::strtoul(stat.c_str() + name_end + 4, nullptr, 10));
}

// Whether `id` is the process `own`, or one that it has started.
bool is_of(unsigned id, unsigned own) {
  for (int generations = 0; id > 1 && generations < 64; ++generations, id = parent_of(id))
    if (id == own) return true;
  return false;
}

// The clock of the driver's samples.
unsigned long long now_us() {
  return static_cast<unsigned long long>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

NvmlLibrary::NvmlLibrary(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const words = dlerror();
    throw Error(ASSAY_UNSUPPORTED,
                fmt::format("the telemetry of the GPU needs NVML: {}; it comes with the driver: in a container ask for "
                            "the driver capability 'utility' (NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
                            words ? words : "no reason was given"));
  }
  nvml::Functions& f = functions_;
  find(library, f.init, "nvmlInit_v2");
  find(library, f.shutdown, "nvmlShutdown");
  find(library, f.error_string, "nvmlErrorString");
  find(library, f.driver_version, "nvmlSystemGetDriverVersion");
  find(library, f.device_by_bus_address, "nvmlDeviceGetHandleByPciBusId_v2");
  find(library, f.mig_mode, "nvmlDeviceGetMigMode");
  find(library, f.utilisation, "nvmlDeviceGetUtilizationRates");
  find(library, f.samples, "nvmlDeviceGetSamples");
  find(library, f.clock, "nvmlDeviceGetClockInfo");
  find(library, f.max_clock, "nvmlDeviceGetMaxClockInfo");
  find(library, f.application_clock, "nvmlDeviceGetApplicationsClock");
  find(library, f.power, "nvmlDeviceGetPowerUsage");
  find(library, f.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  find(library, f.default_power_limit, "nvmlDeviceGetPowerManagementDefaultLimit");
  find(library, f.energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(library, f.temperature, "nvmlDeviceGetTemperature");
  find(library, f.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(library, f.compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3",
       "nvmlDeviceGetComputeRunningProcesses_v2");
  if (!f.init || !f.shutdown || !f.device_by_bus_address)
    throw Error(ASSAY_UNSUPPORTED,
                fmt::format("the telemetry of the GPU: {} has no nvmlInit_v2, nvmlShutdown or "
                            "nvmlDeviceGetHandleByPciBusId_v2; install a driver for CUDA 13 (580 or newer)",
                            file));
  if (const nvml::Return status = f.init(); status != nvml::success)
    throw Error(ASSAY_UNSUPPORTED, fmt::format("the telemetry of the GPU: NVML does not start: {}; check with "
                                               "nvidia-smi, which needs it as well",
                                               words_for(status)));
}

NvmlLibrary::~NvmlLibrary() { functions_.shutdown(); }

std::string NvmlLibrary::words_for(nvml::Return status) const {
  if (status == nvml::function_not_found) return "not in this driver";
  const char* const words = functions_.error_string ? functions_.error_string(status) : nullptr;
  return words ? words : fmt::format("NVML error {}", status);
}

NvmlReader::NvmlReader(const std::string& bus_address, Presence presence, const char* library)
    : nvml_(library), presence_(presence), processes_(64) {
  if (const nvml::Return status = nvml_->device_by_bus_address(bus_address.c_str(), &device_); status != nvml::success)
    throw Error(ASSAY_UNSUPPORTED,
                fmt::format("the telemetry of the GPU at {}: NVML says {}; check that this user may read it with "
                            "nvidia-smi -i {}",
                            bus_address, nvml_.words_for(status), bus_address));
  unsigned current = 0, pending = 0;
  is_mig_ =
      nvml_->mig_mode && nvml_->mig_mode(device_, &current, &pending) == nvml::success && current == nvml::mig_enabled;
  unsigned type = 0, count = 0;
  if (!is_mig_ && nvml_->samples &&
      nvml_->samples(device_, nvml::samples_of_gpu_utilisation, 0, &type, &count, nullptr) == nvml::success)
    samples_.resize(count);
  assay_telemetry_sample probe{};
  sample(ASSAY_TELEMETRY_END, probe);
  is_probing_ = false;
  write_note();
}

template <class Function, class... Arguments>
bool NvmlReader::told(const char* what, Function* function, Arguments... arguments) {
  const nvml::Return status = function ? function(device_, arguments...) : nvml::function_not_found;
  if (status != nvml::success && is_probing_) refusals_.push_back({what, status});
  return status == nvml::success;
}

void NvmlReader::limits(assay_telemetry_limits& out) const {
  out.known = 0;
  if (!nvml_->driver_version || nvml_->driver_version(out.driver, sizeof out.driver) != nvml::success)
    out.driver[0] = '\0';
  const auto take = [&](std::uint64_t bit, double& field, double unit, auto* function, auto... arguments) {
    unsigned value = 0;
    if (!function || function(device_, arguments..., &value) != nvml::success) return;
    field = value * unit;
    out.known |= bit;
  };
  take(ASSAY_LIMIT_MAX_SM_CLOCK, out.max_sm_clock_mhz, 1, nvml_->max_clock, nvml::clock_sm);
  take(ASSAY_LIMIT_MAX_MEMORY_CLOCK, out.max_memory_clock_mhz, 1, nvml_->max_clock, nvml::clock_memory);
  take(ASSAY_LIMIT_APPLICATION_SM_CLOCK, out.application_sm_clock_mhz, 1, nvml_->application_clock, nvml::clock_sm);
  take(ASSAY_LIMIT_APPLICATION_MEMORY_CLOCK, out.application_memory_clock_mhz, 1, nvml_->application_clock,
       nvml::clock_memory);
  take(ASSAY_LIMIT_POWER, out.power_w, 1e-3, nvml_->power_limit);
  take(ASSAY_LIMIT_DEFAULT_POWER, out.default_power_w, 1e-3, nvml_->default_power_limit);
}

void NvmlReader::sample(assay_telemetry_moment moment, assay_telemetry_sample& out) {
  out.known = 0;
  out.throttle = 0;
  read_clocks_and_power(moment, out);
  if (is_mig_) return;
  read_utilisation(moment, out);
  if (moment != ASSAY_TELEMETRY_WITHIN) read_processes(out);
}

void NvmlReader::read_clocks_and_power(assay_telemetry_moment moment, assay_telemetry_sample& out) {
  const auto take = [&](std::uint64_t bit, double& field, double unit, const char* what, auto* function,
                        auto... arguments) {
    unsigned value = 0;
    if (!told(what, function, arguments..., &value)) return;
    field = value * unit;
    out.known |= bit;
  };
  take(ASSAY_TELEMETRY_SM_CLOCK, out.sm_clock_mhz, 1, "the SM clock", nvml_->clock, nvml::clock_sm);
  take(ASSAY_TELEMETRY_MEMORY_CLOCK, out.memory_clock_mhz, 1, "the memory clock", nvml_->clock, nvml::clock_memory);
  take(ASSAY_TELEMETRY_TEMPERATURE, out.temperature_c, 1, "the temperature", nvml_->temperature, nvml::temperature_gpu);
  unsigned long long wide = 0;
  if (told("what holds the clocks down", nvml_->clock_reasons, &wide)) {
    for (const auto& [theirs, ours] : reasons)
      if (wide & theirs) out.throttle |= ours;
    out.known |= ASSAY_TELEMETRY_THROTTLE;
  }
  if (is_mig_) return;  // of the whole GPU, and others may use most of it
  take(ASSAY_TELEMETRY_POWER, out.power_w, 1e-3, "the power", nvml_->power);
  // On an H100 this one call takes 2.4 ms, where the others take a microsecond: within a window it would leave no time
  // for readings of the clocks. Only the difference between a window's ends has a meaning.
  if (moment != ASSAY_TELEMETRY_WITHIN && told("the energy", nvml_->energy, &wide)) {
    out.energy_j = static_cast<double>(wide) * 1e-3;
    out.known |= ASSAY_TELEMETRY_ENERGY;
  }
}

void NvmlReader::read_utilisation(assay_telemetry_moment moment, assay_telemetry_sample& out) {
  std::optional<Reading> reading;
  if (moment == ASSAY_TELEMETRY_BEGIN) has_told_utilisation_ = false;
  if (!samples_.empty()) {
    // Without anything seen so far a sample's span would reach back to 1970.
    if (last_seen_us_ == 0) last_seen_us_ = now_us();
    reading = new_samples();
    if (moment == ASSAY_TELEMETRY_BEGIN) return;  // what was before
  }
  const bool is_last_chance = moment == ASSAY_TELEMETRY_END && !has_told_utilisation_;
  if (!reading && (samples_.empty() || is_last_chance) && moment != ASSAY_TELEMETRY_BEGIN) {
    nvml::Utilisation utilisation{};
    if (told("the utilisation", nvml_->utilisation, &utilisation))
      reading = Reading{static_cast<double>(utilisation.gpu_percent), longest_averaging_s};
  }
  if (!reading) return;
  has_told_utilisation_ = true;
  out.utilisation_percent = reading->percent;
  out.utilisation_span_s = reading->span_s;
  out.known |= ASSAY_TELEMETRY_GPU_UTILISATION;
}

std::optional<NvmlReader::Reading> NvmlReader::new_samples() {
  unsigned type = 0, count = static_cast<unsigned>(samples_.size());
  if (nvml_->samples(device_, nvml::samples_of_gpu_utilisation, last_seen_us_, &type, &count, samples_.data()) !=
          nvml::success ||
      type != nvml::value_unsigned_int)
    return std::nullopt;
  const unsigned long long before_us = last_seen_us_;
  double sum_percent = 0;
  unsigned new_count = 0;
  for (unsigned i = 0; i < std::min<std::size_t>(count, samples_.size()); ++i) {
    if (samples_[i].time_us <= before_us) continue;
    sum_percent += samples_[i].value.as_unsigned;
    last_seen_us_ = std::max(last_seen_us_, samples_[i].time_us);
    ++new_count;
  }
  if (new_count == 0) return std::nullopt;
  return Reading{sum_percent / new_count, static_cast<double>(last_seen_us_ - before_us) * 1e-6};
}

void NvmlReader::read_processes(assay_telemetry_sample& out) {
  unsigned count = 0;
  const auto ask = [&](nvml::Device device) {
    count = static_cast<unsigned>(processes_.size());
    return nvml_->compute_processes(device, &count, processes_.data());
  };
  if (!nvml_->compute_processes) {
    if (is_probing_) refusals_.push_back({"who else computes on it", nvml::function_not_found});
    return;
  }
  nvml::Return status = ask(device_);
  if (status == nvml::insufficient_size) {
    processes_.resize(count + std::size_t{64});  // more may come meanwhile
    status = ask(device_);
  }
  // A process that computes is in the list: an empty list hides what it should report.
  if (status == nvml::success && count == 0 && presence_ == Presence::computes) status = nvml::no_permission;
  if (status != nvml::success) {
    if (is_probing_) refusals_.push_back({"who else computes on it", status});
    return;
  }
  const auto end = processes_.begin() + count;
  if (is_probing_)
    std::for_each(processes_.begin(), end, [this](const nvml::Process& p) { ids_before_.push_back(p.id); });
  const auto own = static_cast<unsigned>(::getpid());
  const bool is_known = std::any_of(processes_.begin(), end, [&](const nvml::Process& p) {
    return presence_ == Presence::computes ? p.id == own : is_of(p.id, own);
  });
  if (is_known) return read_own_and_others(count, out);
  // In a container the list may have other numbers for the same processes. Then one of them is a process that
  // computes, and which memory is its own is not known, nor which of the others it has started.
  if (presence_ == Presence::looks) return count_strangers(count, out);
  out.foreign_processes = count - 1;
  out.known |= ASSAY_TELEMETRY_FOREIGN_PROCESSES;
}

void NvmlReader::read_own_and_others(std::size_t count, assay_telemetry_sample& out) {
  const auto own = static_cast<unsigned>(::getpid());
  const auto begin = processes_.begin(), end = begin + static_cast<std::ptrdiff_t>(count);
  const auto own_begin = std::partition(begin, end, [own](const nvml::Process& p) { return !is_of(p.id, own); });
  out.foreign_processes = static_cast<std::uint64_t>(own_begin - begin);
  out.known |= ASSAY_TELEMETRY_FOREIGN_PROCESSES;
  const auto add = [&out](auto from, auto to, std::uint64_t& bytes, std::uint64_t bit) {
    bytes = 0;
    for (; from != to; ++from) {
      if (from->used_bytes == nvml::not_available) return;
      bytes += from->used_bytes;
    }
    out.known |= bit;
  };
  add(begin, own_begin, out.foreign_memory_bytes, ASSAY_TELEMETRY_FOREIGN_MEMORY);
  if (ASSAY_HAS(&out, assay_telemetry_sample, own_memory_bytes))
    add(own_begin, end, out.own_memory_bytes, ASSAY_TELEMETRY_OWN_MEMORY);
}

// An id that no process here has may be that of one that this process has started, as another container knows it.
// Without anyone in the list nobody computes, or all are hidden.
void NvmlReader::count_strangers(std::size_t count, assay_telemetry_sample& out) const {
  const auto end = processes_.begin() + static_cast<std::ptrdiff_t>(count);
  const auto strangers =
      static_cast<std::size_t>(std::count_if(processes_.begin(), end, [this](const nvml::Process& p) {
        return parent_of(p.id) != 0 || std::find(ids_before_.begin(), ids_before_.end(), p.id) != ids_before_.end();
      }));
  if (strangers == 0) return;
  out.foreign_processes = strangers;
  out.known |= ASSAY_TELEMETRY_FOREIGN_PROCESSES;
}

void NvmlReader::write_note() {
  if (is_mig_)
    note_ = "MIG is on: NVML reports utilisation, power, energy and processes only for whole GPUs; they are left out";
  for (std::size_t i = 0; i < refusals_.size(); ++i) {
    const bool is_first = std::none_of(refusals_.begin(), refusals_.begin() + static_cast<std::ptrdiff_t>(i),
                                       [&](const Refusal& r) { return r.status == refusals_[i].status; });
    if (!is_first) continue;
    std::string names;
    for (const Refusal& refusal : refusals_)
      if (refusal.status == refusals_[i].status) names += (names.empty() ? "" : ", ") + refusal.what;
    note_ += fmt::format("{}NVML does not report {}: {}", note_.empty() ? "" : "; ", names,
                         nvml_.words_for(refusals_[i].status));
  }
}

}  // namespace assay::cuda
