// What a device's backend finds out about it by trying (assay/probe.h), as tables of the device's file.
#pragma once
#include <optional>
#include <string>

namespace assay::host::forecast {

struct ProbedDevice {
  std::string tables;   // TOML, with a comment for each probe that failed
  std::string sources;  // a line of [source] for each of them
  // Peaks for a device whose maker's are not known.
  std::optional<double> copy_gbytes_per_s, fp32_tflop_per_s;
};

std::string toml_text(const std::string& text);  // in quotes, on one line

// Each probe runs in a process of its own, since a vendor's library may crash or hang in it. Throws UsageError where
// the backend has no probes.
ProbedDevice probe_device(const std::string& kind);

}  // namespace assay::host::forecast
