// assay clean
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "cli/options.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "plugin/table_reader.hpp"
#include "results/find_runs.hpp"
#include "results/leftovers.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using results::Leftover;

constexpr const char* about_clean =
    "Lists what can be removed without losing a record, with sizes: caches, generated data sets, and what runs\n"
    "have left that were killed. Removes it with --yes. WHAT is caches, data or runs; without it all three.";

struct Group {
  const char* name;
  Leftover::Kind kind;
  const char* title;
};
constexpr Group groups[] = {{"caches", Leftover::Kind::cache, "Caches"},
                            {"data", Leftover::Kind::data, "Generated data"},
                            {"runs", Leftover::Kind::run, "Leftovers of runs"}};

std::set<Leftover::Kind> kinds_asked_for(const Arguments& words) {
  std::set<Leftover::Kind> kinds;
  std::vector<std::string> names;
  for (const Group& group : groups) names.emplace_back(group.name);
  for (const std::string& word : words) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      throw UsageError(fmt::format("'{}' is nothing to clean; expected {}{}", word, fmt::join(names, ", "),
                                   did_you_mean(word, names)));
    kinds.insert(groups[found - names.begin()].kind);
  }
  if (kinds.empty())
    for (const Group& group : groups) kinds.insert(group.kind);
  return kinds;
}

std::string size_text(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / 1048576.0;
  if (mib >= 1024) return fmt::format("{:.1f} GiB", mib / 1024);
  if (mib >= 0.1) return fmt::format("{:.1f} MiB", mib);
  return bytes >= 1024 ? fmt::format("{:.1f} KiB", mib * 1024) : fmt::format("{} B", bytes);
}

std::vector<Leftover> found_leftovers(const po::variables_map& values, const std::set<Leftover::Kind>& kinds) {
  std::vector<Leftover> all;
  if (kinds.contains(Leftover::Kind::cache))
    all = results::leftovers_of_cache(plugin::table_cache_folder().parent_path());
  Arguments folders = list_of(values, "below");
  for (const std::string& folder : folders)
    if (!results::is_folder(folder)) throw UsageError(fmt::format("--below is {}, which is no folder", folder));
  if (folders.empty())
    for (const char* usual : {"results", "data"})
      if (results::is_folder(usual)) folders.emplace_back(usual);
  for (const std::string& folder : folders)
    for (Leftover& each : results::leftovers_below(folder))
      if (kinds.contains(each.kind)) all.push_back(std::move(each));
  return all;
}

void print_found(const std::vector<Leftover>& all, std::size_t width) {
  for (const Group& group : groups) {
    bool is_first = true;
    for (const Leftover& each : all) {
      if (each.kind != group.kind) continue;
      if (is_first) fmt::print("{}\n", group.title);
      is_first = false;
      // Some of a folder's files are told as the folder, and how many they are.
      const bool is_part = results::is_folder(each.place) && each.kind == Leftover::Kind::cache;
      fmt::print("  {:>10}  {}{}\n", size_text(each.bytes), one_line(each.place.string()),
                 is_part ? fmt::format(" ({} file{})", each.files.size(), each.files.size() == 1 ? "" : "s") : "");
      for (const std::string& line : wrapped(each.what, width > 34 ? width - 14 : 20))
        fmt::print("{:14}{}\n", "", line);
    }
  }
}

}  // namespace

int clean_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("yes", "remove what is listed")(
      "below", po::value<Arguments>()->composing(),
      "a folder to look in for data and runs (default: results and data); repeatable");
  const ParsedOptions options =
      parse_options(arguments, "assay clean [WHAT ...] [options]", about_clean, visible, "what", -1);
  if (options.help) return run::exit_ok;
  const auto kinds = kinds_asked_for(list_of(options.values, "what"));
  const std::vector<Leftover> all = found_leftovers(options.values, kinds);
  if (all.empty()) {
    fmt::print("there is nothing to clean\n");
    return run::exit_ok;
  }
  print_found(all, results::terminal_width(STDOUT_FILENO));
  std::uint64_t bytes = 0;
  for (const Leftover& each : all) bytes += each.bytes;
  if (!options.values.count("yes")) {
    fmt::print("\n{} in all; nothing is removed without --yes\n", size_text(bytes));
    return run::exit_ok;
  }
  std::uint64_t gone = 0;
  std::vector<std::string> problems;
  for (const Leftover& each : all) gone += results::remove(each, problems);
  for (const std::string& problem : problems) fmt::print(stderr, "assay: {}\n", problem);
  fmt::print("\nremoved: {}\n", size_text(gone));
  return problems.empty() ? run::exit_ok : run::exit_failed;
}

}  // namespace assay::host::cli
