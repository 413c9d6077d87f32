#include "profile/ncu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace assay::host::profile {
namespace {

constexpr std::string_view error_mark = "==ERROR==";
constexpr std::size_t most_errors = 3;

// Year and release of "2025.3.1.0"; zeros where there are none.
std::pair<int, int> release_of(std::string_view version) {
  std::pair<int, int> release{0, 0};
  const char* const end = version.data() + version.size();
  const auto [after_year, error] = std::from_chars(version.data(), end, release.first);
  if (error == std::errc() && after_year != end && *after_year == '.')
    std::from_chars(after_year + 1, end, release.second);
  return release;
}

struct Remedy {
  std::string_view sign, text;
};
constexpr std::array remedies{
    Remedy{"ERR_NVGPUCTRPERM",
           "no permission to read the device's counters: run as root, or load the driver's module nvidia with "
           "NVreg_RestrictProfilingToAdminUsers=0 (in a container: with the capability SYS_ADMIN)"},
    Remedy{"unrecognised option",
           "this ncu does not know an option that assay gives it: install Nsight Compute 2023.1 "
           "or later"},
    Remedy{"Failed to find metric", "this ncu, or this device, has no counter of a name that assay asks for"},
    Remedy{"concurrently collecting",
           "another profiler reads the counters of this device (ncu, DCGM): end it, or wait for it"},
};

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string ncu_version(std::string_view said) {
  constexpr std::string_view mark = "Version ";
  for (std::size_t at = said.find(mark); at != std::string_view::npos; at = said.find(mark, at + 1)) {
    std::string_view rest = said.substr(at + mark.size());
    const std::size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
    if (end > 0) return std::string(rest.substr(0, end));
  }
  return "";
}

bool is_too_old(const std::string& version) { return release_of(version) < release_of(oldest_ncu); }

std::vector<std::string> ncu_arguments(const std::filesystem::path& table, std::int64_t launches) {
  using namespace counter;
  constexpr std::array metrics{time,  dram_bytes, dram_percent,    sm_percent, tensor_percent, occupancy_percent,
                               clock, adds,       multiplications, fused};
  return {
      "--target-processes",
      "application-only",  // what the workload starts is not looked into
      "--profile-from-start",
      "off",  // from cudaProfilerStart on
      "--graph-profiling",
      "node",
      "--replay-mode",
      "kernel",
      "--clock-control",
      "none",  // as in a run without ncu
      "--launch-count",
      fmt::format("{}", launches),
      "--section",
      "SpeedOfLight_HierarchicalTensorRooflineChart",
      "--metrics",
      fmt::format("{}", fmt::join(metrics, ",")),
      "--csv",
      "--page",
      "raw",
      "--print-units",
      "base",
      "--print-kernel-base",
      "mangled",
      "--log-file",
      table.string(),
  };
}

std::string ncu_complaint(std::string_view text) {
  std::vector<std::string> errors;
  std::string remedy;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(error_mark)) continue;
    line = without_blanks(line.substr(error_mark.size()));
    for (const Remedy& each : remedies)
      if (remedy.empty() && line.find(each.sign) != std::string_view::npos) remedy = each.text;
    if (errors.size() < most_errors && std::find(errors.begin(), errors.end(), line) == errors.end())
      errors.emplace_back(line);
  }
  if (errors.empty()) return "";
  const std::string said = fmt::format("ncu says \"{}\"", fmt::join(errors, "\"; \""));
  return remedy.empty() ? said : fmt::format("{}; {}", remedy, said);
}

}  // namespace assay::host::profile
