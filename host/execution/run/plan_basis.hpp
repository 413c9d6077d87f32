// What every plan of this process stands on.
#pragma once
#include <atomic>
#include <optional>

#include "run/installed_ncu.hpp"
#include "run/plan.hpp"
#include "run/taken_files.hpp"

namespace assay::host::run {

// Without `ask_device` and `finished`, which the caller adds. It refers to `target`, `files` and `stop`: hashing a
// large input ends with ReadingStopped as soon as that is not 0.
inline PlanBasis plan_basis(const RunTarget& target, TakenFiles& files,
                            const std::optional<wireup::LaunchedRank>& launched, bool in_process,
                            const std::atomic<int>& stop) {
  return {target.schema,
          launched,
          in_process,
          {},
          {},
          {},
          [&files](const std::string& device_kind, std::int32_t ranks) { return files.hashes(device_kind, ranks); },
          [&files, &stop](const std::string& path) { return files.input_hash(path, &stop); },
          [] { return installed_ncu().problem; }};
}

}  // namespace assay::host::run
