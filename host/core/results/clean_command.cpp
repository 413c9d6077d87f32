#include "results/clean_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>

#include "common/exit_code.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "results/find_runs.hpp"
#include "results/leftovers.hpp"
#include "results/terminal.hpp"

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;
struct Cleanable {
  const char* name;
  Leftover::Kind kind;
  const char* title;
};
constexpr Cleanable cleanable[] = {{"caches", Leftover::Kind::cache, "Caches"},
                                   {"data", Leftover::Kind::data, "Generated data"},
                                   {"runs", Leftover::Kind::run, "Leftovers of runs"}};
constexpr const char* title_of_old_runs = "Old runs, with their records";

std::set<Leftover::Kind> kinds_asked_for(const std::vector<std::string>& words) {
  std::set<Leftover::Kind> kinds;
  std::vector<std::string> names;
  for (const Cleanable& group : cleanable) names.emplace_back(group.name);
  for (const std::string& word : words) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      throw UsageError(fmt::format("'{}' is nothing to clean; expected {}{}", word, fmt::join(names, ", "),
                                   did_you_mean(word, names)));
    kinds.insert(cleanable[found - names.begin()].kind);
  }
  if (kinds.empty())
    for (const Cleanable& group : cleanable) kinds.insert(group.kind);
  return kinds;
}

std::string size_text(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / 1048576.0;
  if (mib >= 1024) return fmt::format("{:.1f} GiB", mib / 1024);
  if (mib >= 0.1) return fmt::format("{:.1f} MiB", mib);
  return bytes >= 1024 ? fmt::format("{:.1f} KiB", mib * 1024) : fmt::format("{} B", bytes);
}

std::vector<Leftover> found_leftovers(const CleanRequest& request, const std::set<Leftover::Kind>& kinds) {
  std::vector<Leftover> all;
  if (!request.older_than_days && kinds.contains(Leftover::Kind::cache)) all = leftovers_of_cache(request.cache_folder);
  std::vector<std::string> folders = request.below;
  for (const std::string& folder : folders)
    if (!is_folder(folder)) throw UsageError(fmt::format("--below is {}, which is no folder", folder));
  if (folders.empty())
    for (const char* usual : {"results", "data"})
      if (is_folder(usual)) folders.emplace_back(usual);
  if (request.older_than_days) {
    const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
    for (const std::string& folder : folders)
      for (Leftover& each : old_runs_below(folder, now.count() - *request.older_than_days * 86400))
        all.push_back(std::move(each));
    return all;
  }
  for (const std::string& folder : folders)
    for (Leftover& each : leftovers_below(folder))
      if (kinds.contains(each.kind)) all.push_back(std::move(each));
  return all;
}

void print_found(const std::vector<Leftover>& all, std::size_t width) {
  std::vector<Cleanable> groups(std::begin(cleanable), std::end(cleanable));
  groups.push_back({"", Leftover::Kind::old_run, title_of_old_runs});
  for (const Cleanable& group : groups) {
    bool is_first = true;
    for (const Leftover& each : all) {
      if (each.kind != group.kind) continue;
      if (is_first) fmt::print("{}\n", group.title);
      is_first = false;
      // Some of a folder's files are named by the folder, and how many they are.
      const bool is_part = is_folder(each.place) && each.kind == Leftover::Kind::cache;
      fmt::print("  {:>10}  {}{}\n", size_text(each.bytes), one_line(each.place.string()),
                 is_part ? fmt::format(" ({} file{})", each.files.size(), each.files.size() == 1 ? "" : "s") : "");
      for (const std::string& line : wrapped(each.what, width > 34 ? width - 14 : 20))
        fmt::print("{:14}{}\n", "", line);
    }
  }
}

}  // namespace

int clean(const CleanRequest& request) {
  if (request.older_than_days && !request.what.empty())
    throw UsageError("--older-than cleans whole runs; leave out the other kinds");
  if (request.older_than_days && !(*request.older_than_days > 0 && *request.older_than_days < 1e6))
    throw UsageError("--older-than takes days; expected a number above 0");
  const auto kinds = kinds_asked_for(request.what);
  const std::vector<Leftover> all = found_leftovers(request, kinds);
  if (all.empty()) {
    fmt::print("there is nothing to clean\n");
    return exit_ok;
  }
  print_found(all, terminal_width(STDOUT_FILENO));
  std::uint64_t bytes = 0;
  for (const Leftover& each : all) bytes += each.bytes;
  if (!request.yes) {
    fmt::print("\n{} in all; nothing is removed without --yes\n", size_text(bytes));
    return exit_ok;
  }
  std::uint64_t gone = 0;
  std::vector<std::string> problems;
  for (const Leftover& each : all) gone += remove(each, problems);
  for (const std::string& problem : problems) fmt::print(stderr, "assay: {}\n", problem);
  fmt::print("\nremoved: {}\n", size_text(gone));
  return problems.empty() ? exit_ok : exit_failed;
}

}  // namespace assay::host::results
