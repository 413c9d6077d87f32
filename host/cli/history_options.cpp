#include "cli/history_options.hpp"

#include <fmt/format.h>

#include <chrono>

#include "cli/options.hpp"
#include "common/utc.hpp"
#include "results/find_runs.hpp"

namespace assay::host::cli {

namespace fs = std::filesystem;
namespace po = boost::program_options;

std::string since_when(const po::variables_map& values) {
  const std::string given = values.count("since") ? values["since"].as<std::string>() : "";
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

std::vector<fs::path> folders_of_results(const po::variables_map& values) {
  std::vector<fs::path> folders;
  for (const std::string& folder : list_of(values, "results")) folders.emplace_back(folder);
  if (folders.empty()) folders.emplace_back("results");
  for (const fs::path& folder : folders)
    if (!results::is_folder(folder))
      throw UsageError(fmt::format("{} is no folder; expected one with results, by --results", folder.string()));
  return folders;
}

}  // namespace assay::host::cli
