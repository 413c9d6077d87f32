#include "history/history_options.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "results/find_runs.hpp"

namespace assay::host::history {

namespace fs = std::filesystem;

std::string since_when(const std::optional<std::string>& option) {
  const std::string given = option.value_or("");
  if (given.empty()) return "";
  if (const auto time = parse_utc(given.size() == 10 ? given + "T00:00:00Z" : given)) return utc_text(*time);
  const std::string digits = given.substr(0, given.size() - 1);
  const char unit = given.back();
  if (!digits.empty() && digits.size() < 6 && digits.find_first_not_of("0123456789") == std::string::npos &&
      (unit == 'd' || unit == 'w')) {
    const std::chrono::days days(std::stol(digits) * (unit == 'w' ? 7 : 1));
    return utc_text(std::chrono::system_clock::now() - days);
  }
  throw UsageError(fmt::format("--since is '{}'; expected a day (2026-11-03) or an age (30d, 4w)", given));
}

std::vector<fs::path> folders_of_results(const std::vector<std::string>& given) {
  std::vector<fs::path> folders(given.begin(), given.end());
  if (folders.empty()) folders.emplace_back("results");
  for (const fs::path& folder : folders)
    if (!results::is_folder(folder))
      throw UsageError(fmt::format("{} is no folder; expected one with results, by --results", folder.string()));
  return folders;
}

}  // namespace assay::host::history
