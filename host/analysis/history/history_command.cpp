#include "history/history_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "common/exit_code.hpp"
#include "common/suggest.hpp"
#include "common/usage_error.hpp"
#include "compare/statistic_words.hpp"
#include "history/history_options.hpp"
#include "history/report.hpp"
#include "history/sqlite.hpp"
#include "record/json.hpp"
#include "results/terminal.hpp"

namespace assay::host::history {
namespace {

namespace fs = std::filesystem;

void check_name(const std::string& name, const Index& index) {
  std::set<std::string> known;
  for (const IndexedRecord& record : index.records()) known.insert({record.experiment, record.workload});
  if (name.empty() || known.contains(name)) return;
  const std::vector<std::string> names(known.begin(), known.end());
  std::error_code ignored;
  if (fs::is_directory(name, ignored))
    throw UsageError(fmt::format("no experiment or workload is called '{0}'; give a folder as --results {0}", name));
  throw UsageError(
      fmt::format("no experiment or workload is called '{}'; there {} {}{}", name, names.size() == 1 ? "is" : "are",
                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), did_you_mean(name, names)));
}

int print_history(const HistoryRequest& request, std::vector<std::string> warnings) {
  if (!(request.threshold > 0 && request.threshold < 100))
    throw UsageError(fmt::format("--threshold is {}; expected percent above 0 and below 100", request.threshold));
  SeriesOptions options;
  options.name = request.name;
  options.metric = request.metric;
  options.since = since_when(request.since);
  options.with_ab = request.with_ab;
  options.test.threshold = request.threshold / 100;
  options.test.statistic = compare::statistic_of(request.statistic);
  const std::vector<fs::path> folders = folders_of_results(request.results);

  Index index(Index::usual_file(), warnings);
  index.refresh(folders, warnings);
  check_name(options.name, index);
  const SeriesFound found = find_series(index, options, warnings);
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
  std::vector<IndexedRun> runs = index.runs();
  if (runs.empty()) throw UsageError(fmt::format("there is no run below {}", folders.front().string()));
  if (found.series.empty() && !found.metrics.empty())
    throw UsageError(fmt::format("no record has '{}'{}", options.metric, known_instead(options.metric, found.metrics)));
  if (request.json) {
    fmt::print("{}\n", record::json_text(history_json(runs, found, options), 2));
    return exit_ok;
  }
  const std::size_t width = results::terminal_width(STDOUT_FILENO);
  if (options.name.empty()) fmt::print("{}\n", overview_text(runs, width));
  fmt::print("{}", history_text(found, options, width, Palette::of(STDOUT_FILENO)));
  return exit_ok;
}

}  // namespace

// A page of the index that is broken is met only when it is read: the index is then made anew, once.
int show_history(const HistoryRequest& request) try {
  return print_history(request, {});
} catch (const DatabaseError& e) {
  const fs::path file = Index::usual_file();
  std::error_code error;
  if (!e.is_damaged() || !fs::remove(file, error)) throw;
  return print_history(request,
                       {fmt::format("the index {} was damaged ({}) and is made anew", file.string(), e.what())});
}

}  // namespace assay::host::history
