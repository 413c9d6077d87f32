// assay history
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/history_options.hpp"
#include "cli/options.hpp"
#include "cli/statistic_option.hpp"
#include "common/suggest.hpp"
#include "history/report.hpp"
#include "history/sqlite.hpp"
#include "record/json.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* about_history =
    "Shows a figure of each case over all runs that lie below the folders of results: a line of it in time, and\n"
    "since when it is slower or faster, with what else changed then. NAME is an experiment or a workload; without\n"
    "it all are shown. An index makes it quick, and can be deleted.";

void check_name(const std::string& name, const history::Index& index) {
  std::set<std::string> known;
  for (const history::IndexedRecord& record : index.records()) known.insert({record.experiment, record.workload});
  if (name.empty() || known.contains(name)) return;
  const std::vector<std::string> names(known.begin(), known.end());
  throw UsageError(
      fmt::format("no experiment or workload is called '{}'; there {} {}{}", name, names.size() == 1 ? "is" : "are",
                  names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")), did_you_mean(name, names)));
}

double percent_of(const po::variables_map& values) {
  const double percent = values["threshold"].as<double>();
  if (!(percent > 0 && percent < 100))
    throw UsageError(fmt::format("--threshold is {}; expected percent above 0 and below 100", percent));
  return percent / 100;
}

int show_history(const po::variables_map& values, std::vector<std::string> warnings) {
  history::SeriesOptions options;
  const Arguments names = list_of(values, "name");
  if (!names.empty()) options.name = names.front();
  options.metric = values["metric"].as<std::string>();
  options.since = since_when(values);
  options.with_ab = values.count("with-ab") > 0;
  options.test.threshold = percent_of(values);
  options.test.statistic = statistic_of(values["statistic"].as<std::string>());
  const std::vector<fs::path> folders = folders_of_results(values);

  history::Index index(history::Index::usual_file(), warnings);
  index.refresh(folders, warnings);
  check_name(options.name, index);
  const history::SeriesFound found = history::find_series(index, options, warnings);
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
  std::vector<history::IndexedRun> runs = index.runs();
  if (runs.empty()) throw UsageError(fmt::format("there is no run below {}", folders.front().string()));
  if (found.series.empty() && !found.metrics.empty())
    throw UsageError(fmt::format("no record has '{}'{}", options.metric, known_instead(options.metric, found.metrics)));
  if (values.count("json")) {
    fmt::print("{}\n", record::json_text(history::history_json(runs, found, options), 2));
    return run::exit_ok;
  }
  const std::size_t width = results::terminal_width(STDOUT_FILENO);
  if (options.name.empty()) fmt::print("{}\n", history::overview_text(runs, width));
  fmt::print("{}", history::history_text(found, options, width, Palette::of(STDOUT_FILENO)));
  return run::exit_ok;
}

// A page of the index that is broken is met only when it is read: the index is then made anew, once.
int show_history_from_sound_index(const po::variables_map& values) try {
  return show_history(values, {});
} catch (const history::DatabaseError& e) {
  const fs::path file = history::Index::usual_file();
  std::error_code error;
  if (!e.is_damaged() || !fs::remove(file, error)) throw;
  return show_history(values, {fmt::format("the index {} was damaged ({}) and is made anew", file.string(), e.what())});
}

}  // namespace

int history_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()("metric", po::value<std::string>()->default_value("step"),
                        "what to follow, as for `assay compare`: step, a phase, a rate, memory, a metric, a column")(
      "since", po::value<std::string>(), "runs from a day on (2026-11-03), or of an age (30d, 4w)")(
      "results", po::value<Arguments>()->composing(), "a folder of results (default: results); repeatable")(
      "threshold", po::value<double>()->default_value(1, "1"), "percent below which a change is none")(
      "statistic", po::value<std::string>()->default_value(word_of(compare::TestOptions().statistic)), statistic_help)(
      "with-ab", "also the turns of `assay ab`")("json", "print one JSON object");
  const ParsedOptions options =
      parse_options(arguments, "assay history [NAME] [options]", about_history, visible, "name", 1);
  if (options.help) return run::exit_ok;
  return show_history_from_sound_index(options.values);
}

}  // namespace assay::host::cli
