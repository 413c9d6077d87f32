// What machine and software a run was made with: an allow-list, never the whole environment.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::telemetry {

// Where the facts come from; tests put other files below `root`.
struct EnvironmentSource {
  std::filesystem::path root = "/";
  // The process's variables, all of them; the allow-list picks.
  std::function<std::vector<std::pair<std::string, std::string>>()> variables;
  EnvironmentSource();
};

// Keys: captured, command, cpu, memory, os, gpu, load_average, assay, job, variables. What this machine does not report
// is absent. Clocks and power limits are those of a device, which a case opens: they stand in its record.
nlohmann::ordered_json capture_environment(const EnvironmentSource& source = {});

std::string assay_version();   // "1.0.0"
std::string assay_revision();  // the source's git revision, "+changes" when it had uncommitted ones; "unknown"
std::string assay_compiler();  // "GNU 12.2.0 Release"
// The versions of assay/abi.h and assay/device.h that this host speaks: "1.3".
std::string assay_abi();
std::string assay_device_abi();

}  // namespace assay::host::telemetry
