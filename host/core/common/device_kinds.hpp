// The kinds of devices that the host knows: one row for each. Other backends are found by their files alone
// (plugin/device_words.hpp); a flag of assay/abi.h and a row here add what workloads, plans and profilers ask for.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host {

struct KindOfDevice {
  std::string_view name;   // of its backend's file, in [run] device and in records
  std::uint32_t flag;      // of a workload that runs on it: assay/abi.h
  bool is_gpu;             // a machine has several, and a rank takes one of them
  bool has_nvidia_tools;   // nsys and ncu look into it
  std::string_view usual;  // the description of a usual one (configs/devices); "": this machine's processors
};

// In the order in which `device = "auto"` takes them.
inline constexpr std::array kinds_of_devices{KindOfDevice{"cuda", 2, true, true, "h200"},
                                             KindOfDevice{"cpu", 1, false, false, ""}};

// Null for a kind that is not known here.
constexpr const KindOfDevice* kind_of_device(std::string_view name) {
  for (const KindOfDevice& kind : kinds_of_devices)
    if (kind.name == name) return &kind;
  return nullptr;
}
// Whoever writes a backend of another kind has an accelerator.
constexpr bool is_gpu(std::string_view name) {
  const KindOfDevice* const kind = kind_of_device(name);
  return kind ? kind->is_gpu : !name.empty() && name != "auto";
}
constexpr bool has_nvidia_tools(std::string_view name) {
  const KindOfDevice* const kind = kind_of_device(name);
  return kind && kind->has_nvidia_tools;
}

inline std::vector<std::string> device_kind_names() {  // "cpu", "cuda"
  std::vector<std::string> names;
  for (auto kind = kinds_of_devices.rbegin(); kind != kinds_of_devices.rend(); ++kind) names.emplace_back(kind->name);
  return names;
}

// What an option or a setting takes that names a device of this machine: "auto", and each kind.
inline std::vector<std::string> device_words() {
  std::vector<std::string> words = device_kind_names();
  words.insert(words.begin(), "auto");
  return words;
}

}  // namespace assay::host
