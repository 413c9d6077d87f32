// `assay clean`: what can be removed without losing a record.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::results {

struct CleanRequest {
  std::vector<std::string> what;  // of "caches", "data", "runs"; none: all of them
  std::vector<std::string> below;
  std::optional<double> older_than_days;  // whole runs that nothing has written to for so long, alone
  bool yes = false;                       // removes it, too
  std::filesystem::path cache_folder;
};

// Lists what is found, and removes it where that is asked for. Returns the exit code. Throws UsageError.
int clean(const CleanRequest& request);

}  // namespace assay::host::results
