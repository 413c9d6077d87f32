// What every plan of this process stands on.
#pragma once
#include <optional>

#include "run/installed_ncu.hpp"
#include "run/plan.hpp"
#include "run/taken_files.hpp"

namespace assay::host::run {

// Without `ask_device` and `finished`, which the caller adds. It refers to `target` and `files`.
inline PlanBasis plan_basis(const RunTarget& target, TakenFiles& files,
                            const std::optional<wireup::LaunchedRank>& launched, bool in_process) {
  return {target.schema,
          launched,
          in_process,
          {},
          {},
          {},
          [&files](const std::string& device_kind, std::int32_t ranks) { return files.hashes(device_kind, ranks); },
          [&files](const std::string& path) { return files.input_hash(path); },
          [] { return installed_ncu().problem; }};
}

}  // namespace assay::host::run
