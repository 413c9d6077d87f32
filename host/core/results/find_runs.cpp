#include "results/find_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExpected =
    "expected a run folder (with cases.jsonl), a cases.jsonl, a summary bench_*.json, or a folder with some of these "
    "below it";

// The runs below a folder, or else its summaries. A run folder holds no others.
void add_runs_below(const fs::path& folder, std::vector<fs::path>& runs) {
  std::vector<fs::path> folders, summaries;
  bool holds_runs = false;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    // `latest` is one of the others.
    if (it->is_symlink()) continue;
    if (is_there(it->path() / "cases.jsonl")) {
      runs.push_back(it->path());
      holds_runs = true;
    } else if (is_folder(it->path())) {
      folders.push_back(it->path());
    } else if (name.starts_with("bench_") && name.ends_with(".json")) {
      summaries.push_back(it->path());
    }
  }
  for (const fs::path& below : folders) add_runs_below(below, runs);
  // Beside runs they are the summaries of these.
  if (!holds_runs) runs.insert(runs.end(), summaries.begin(), summaries.end());
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_batch(const fs::path& run) { return is_folder(run / "batch"); }

std::string text_of_no_records(const fs::path& run) {
  return fmt::format(
      "{}: no case has finished there{}", run.string(),
      is_batch(run)
          ? fmt::format(", or those of its shards have not been brought together: assay collect {}", run.string())
          : "");
}

std::vector<fs::path> runs_below(const fs::path& folder) {
  std::vector<fs::path> runs;
  if (is_folder(folder) && !is_there(folder / "cases.jsonl")) add_runs_below(folder, runs);
  std::sort(runs.begin(), runs.end());
  return runs;
}

std::vector<std::string> without_links_to_others(const std::vector<std::string>& given,
                                                 std::vector<std::string>& warnings) {
  std::map<fs::path, std::string> places;  // of what is no link
  std::error_code error;
  const auto is_link = [&error](const std::string& each) { return fs::is_symlink(fs::path(each), error); };
  for (const std::string& each : given)
    if (!is_link(each)) places.emplace(fs::weakly_canonical(each, error), each);
  std::vector<std::string> kept;
  for (const std::string& each : given) {
    const auto other = is_link(each) ? places.find(fs::weakly_canonical(each, error)) : places.end();
    if (other == places.end())
      kept.push_back(each);
    else
      warnings.push_back(
          fmt::format("{} is a link to {}, which is given as well: it counts once", each, other->second));
  }
  return kept;
}

std::vector<fs::path> runs_of(const std::string& given) {
  const fs::path path = given;
  if (!is_there(path)) throw NoRunError(fmt::format("{} is not there; {}", given, kExpected));
  if (!is_folder(path) || is_there(path / "cases.jsonl")) return {path};
  std::vector<fs::path> runs = runs_below(path);
  if (runs.empty()) throw NoRunError(fmt::format("{} holds no run; {}", given, kExpected));
  return runs;
}

}  // namespace assay::host::results
