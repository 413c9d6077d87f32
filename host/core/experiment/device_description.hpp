// A device that need not be here: what of it decides whether a case fits and how long its step takes at least. Read
// from a file (configs/devices has one for each usual GPU), or written by `assay describe-device`. Also
// what was measured of it that telemetry, phases and plans go by (docs/devices.md).
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/usage_error.hpp"

namespace assay::host::experiment {

inline constexpr std::array arithmetics{"fp64", "fp32", "tf32", "fp16", "bf16", "fp8"};

// What was measured of such a device, in the tables of its file that `describe-device --probe` fills. Nothing: not
// known.
struct DeviceFacts {
  std::string source;                            // the file, for notes; "": no file describes the device
  std::optional<double> graph_launch_us;         // of a graph of one kernel, until it is done
  std::optional<double> event_least_gap_us;      // between two events with nothing between
  std::optional<double> event_captured_us;       // what each of a few events adds to a graph's replay
  std::optional<double> event_captured_many_us;  // of hundreds
  std::optional<double> energy_period_ms;        // from one value of the energy counter to the next
  std::optional<double> power_average_ms;        // the time over which the power is averaged

  // What each of so many events adds to a replay; nothing where the file does not say.
  std::optional<double> captured_event_us(std::int64_t events) const;
};

struct DeviceDescription {
  std::string file;  // where it was read
  std::string kind;  // "cuda", "cpu"
  std::string name;  // as the driver reports it
  double memory_total_mib = 0;
  std::int64_t compute_units = 0;
  std::int32_t count = 1;  // of such devices in a machine; of a file always one
  double l2_cache_mib = 0;
  std::array<double, arithmetics.size()> tflop_per_s{};  // dense; 0: the file does not say
  double memory_gbytes_per_s = 0;
  double link_gbytes_per_s = 0;  // each direction, to all other devices of the machine together; 0: not said
  // What a process holds of the device beside what it asks for, as measured on a machine: when the device is open; for
  // the code of its kernels; where there are matrix products; where there is a communicator. Nothing: not said.
  std::optional<double> context_mib, kernels_mib, products_mib, communicator_mib;
  DeviceFacts facts;

  double flops_per_s(std::string_view arithmetic) const;  // 0: not said
};

// The text has the file, the line where there is one, and the remedy.
class DeviceFileError : public UsageError {
 public:
  using UsageError::UsageError;
};

DeviceDescription read_device_file(const std::filesystem::path& file);
// "h200": the file of that name that came with this installation. Where there is no such file, the error names those
// that there are.
DeviceDescription find_device_description(const std::string& name);
std::vector<std::string> described_devices();  // their names
struct FoundFacts {
  DeviceFacts facts;               // none where no file describes the device
  std::vector<std::string> notes;  // of files that are wrong and left out: one that is bad concerns no other device
};
// Facts of the device of this kind and driver's name, from the file below `folder`, or where that is empty
// from the one that came with this installation.
FoundFacts facts_of_device(const std::string& kind, const std::string& name, const std::filesystem::path& folder = {});

}  // namespace assay::host::experiment
