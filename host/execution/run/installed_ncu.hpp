// Nsight Compute as this machine has it.
#pragma once
#include <string>

namespace assay::host::run {

struct InstalledNcu {
  std::string version;  // "2025.3.1.0"
  std::string problem;  // why it cannot be run, with the remedy, in words; "": it can
};

// Looks for ncu on the PATH and asks it for its version, once in this process.
const InstalledNcu& installed_ncu();

}  // namespace assay::host::run
