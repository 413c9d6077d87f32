// Figures that a device's backend measures (assay/probe.h), as tables of the device's file.
#pragma once
#include <array>
#include <string>

#include "experiment/device_description.hpp"

namespace assay::host::plan {

struct ProbedDevice {
  std::string tables;   // TOML, with a comment for each probe that failed
  std::string sources;  // a line of [source] for each of them
  // Peaks for a device whose maker's are not known, 0 where no probe has measured them: `rate.copy_gbytes_per_s`, and
  // `rate.<arithmetic>_normal_tflop_per_s`, a product of numbers as models have them.
  double copy_gbytes_per_s = 0;
  std::array<double, experiment::arithmetics.size()> tflop_per_s{};
};

// Each probe runs in a separate process, since a vendor's library may crash or hang in it. Throws UsageError where
// the backend has no probes.
ProbedDevice probe_device(const std::string& kind);

}  // namespace assay::host::plan
