// Holds the options that `assay history` and the history of `assay report` share.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::history {

// --since: "2026-11-03", "2026-11-03T12:00:00Z", or an age, "30d", "4w". In UTC as records have it; "" where it is not
// given. Throws UsageError.
std::string since_when(const std::optional<std::string>& given);

// --results, each a folder; "results" where it is not given. Throws UsageError.
std::vector<std::filesystem::path> folders_of_results(const std::vector<std::string>& given);

}  // namespace assay::host::history
