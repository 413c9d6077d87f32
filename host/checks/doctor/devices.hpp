// The devices of a machine, as their backends report them. A separate process asks each kind: a vendor's library
// that crashes or hangs is reported as such.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::doctor {

struct DeviceState {
  std::int32_t ordinal = 0;
  std::string problem;  // "" where it could be opened; then the rest is filled
  std::string name, libraries, bus_address, uuid, driver;
  std::int32_t compute_units = 0;  // threads of the CPU, multiprocessors of a GPU
  double memory_total_mib = 0, memory_free_mib = 0;
  // At rest, as far as the device reports it.
  std::optional<double> max_sm_clock_mhz, application_sm_clock_mhz, power_limit_w, default_power_limit_w, temperature_c,
      power_w;
  std::optional<std::uint64_t> foreign_processes;
  std::optional<double> foreign_memory_mib;
  std::vector<std::string> held_by;  // what holds its clocks down now, beside that nothing runs
  std::string note;                  // what it does not report, and why
};

struct DeviceKind {
  std::string kind;     // "cpu", "cuda"
  std::string problem;  // why none of this kind can be used; "" otherwise
  std::vector<DeviceState> devices;
  bool is_usable() const {
    for (const DeviceState& device : devices)
      if (device.problem.empty()) return true;
    return false;
  }
};

// The devices of every installed backend.
std::vector<DeviceKind> ask_devices();
// The devices of one backend, asked in this process.
DeviceKind ask_devices_of_kind(const std::string& kind);

}  // namespace assay::host::doctor
