// Findings that would spoil a measurement on a machine, with remedies: one row for each check.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/devices.hpp"
#include "doctor/machine.hpp"

namespace assay::host::doctor {

// What findings are made from.
struct Facts {
  Machine machine;
  std::vector<DeviceKind> devices;
  bool devices_asked = true;               // false of a folder that stands for another machine
  std::vector<std::string> communicators;  // that are installed: "gloo", "nccl"
  std::size_t plugins = 0;

  const DeviceKind* kind(std::string_view name) const;
  // What `device = "auto"` is: "cuda", "cpu", or "" where there is none.
  std::string auto_device() const;
};

enum class Severity {
  note,     // worth knowing; spoils no measurement by itself
  warning,  // figures would be worse, or scatter more, than they could
  error     // something that is there cannot be used
};
const char* name_of(Severity severity);

struct FindingRow {
  const char* name;  // "cpu.governor"
  Severity severity;
  const char* effect;  // what it does to a measurement
  const char* remedy;
  // A text for each place where it is so; empty where all is well, and where the machine does not say.
  std::vector<std::string> (*find)(const Facts&);
};
std::span<const FindingRow> all_findings();

struct Finding {
  const FindingRow* row = nullptr;
  std::string what;
};
// The gravest first.
std::vector<Finding> findings_of(const Facts& facts);

// The CUDA device needs a driver of at least this major version (docs/install.md).
inline constexpr int least_driver = 580;

}  // namespace assay::host::doctor
