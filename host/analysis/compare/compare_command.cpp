#include "compare/compare_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "common/exit_code.hpp"
#include "common/filter.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "common/value.hpp"
#include "compare/overview.hpp"
#include "compare/report.hpp"
#include "compare/sides.hpp"
#include "compare/split.hpp"
#include "compare/statistic_words.hpp"
#include "results/terminal.hpp"

namespace assay::host::compare {
namespace {

FailIf fail_if_of(const std::vector<std::string>& words) {
  FailIf fail_if;
  for (const std::string& word : words) {
    if (word == "slower")
      fail_if.slower = true;
    else if (word == "cannot-tell")
      fail_if.cannot_tell = true;
    else if (word == "unmatched")
      fail_if.unmatched = true;
    else if (word == "differs")
      fail_if.differs = true;
    else
      throw UsageError(fmt::format("--fail-if is '{}'{}, and several of them separated by commas", word,
                                   known_instead(word, {"slower", "differs", "cannot-tell", "unmatched"})));
  }
  return fail_if;
}

// "3.00", "5.50", or "3.00,5.50".
std::vector<double> dollars_in(const std::vector<std::string>& given) {
  std::vector<double> dollars;
  for (const std::string& text : given)
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      const std::optional<double> number = number_in(part);
      if (!number || !(*number > 0)) throw UsageError(fmt::format("--cost has '{}'; expected dollars above 0", part));
      dollars.push_back(*number);
      begin = end + 1;
    }
  return dollars;
}

// Holds what the command line asks for, checked.
struct Checked {
  std::vector<std::string> runs;
  FolderOfRuns folders = FolderOfRuns::sides;
  SplitRules split;
  ComparisonOptions options;
  ReportOptions report;
  FailIf fail_if;
  std::string format;
};

std::string spelt(const Comparison& comparison, const Checked& asked) {
  const TestOptions& test = asked.options.test;
  if (asked.format == "terminal")
    return comparison_text(comparison, test, results::table_width(STDOUT_FILENO), asked.report);
  if (asked.format == "markdown") return comparison_markdown(comparison, test, asked.report);
  if (asked.format == "csv") return comparison_csv(comparison, asked.report);
  return comparison_json(comparison, test);
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
}

int exit_for(const std::vector<std::string>& reasons) {
  for (const std::string& reason : reasons) fmt::print(stderr, "assay: failed: {}\n", reason);
  return reasons.empty() ? exit_ok : exit_failed;
}

Checked checked(const CompareRequest& request) {
  Checked asked;
  asked.report.palette = Palette::of(STDOUT_FILENO);
  asked.format = request.format;
  const std::string& format = asked.format;
  if (format != "terminal" && format != "markdown" && format != "csv" && format != "json")
    throw UsageError(
        fmt::format("--format is '{}'{}", format, known_instead(format, {"terminal", "markdown", "csv", "json"})));
  asked.runs = request.runs;
  if (asked.runs.empty()) throw UsageError("no run is given; expected at least two, or one with --by");
  if (request.group) asked.folders = FolderOfRuns::one_side;
  asked.fail_if = fail_if_of(comma_separated(request.fail_if));
  asked.split.keys = comma_separated(request.by);
  asked.report.by = fmt::format("{}", fmt::join(asked.split.keys, ","));
  asked.split.baseline = request.baseline;
  if (asked.split.baseline && asked.split.keys.empty())
    throw UsageError("--baseline is a value of --by and needs it; without --by the first run is the baseline");
  asked.report.side_by_side = request.side_by_side;
  asked.report.tells_test = request.explain;
  ComparisonOptions& options = asked.options;
  if (const auto metrics = comma_separated(request.metric); !metrics.empty()) options.metrics = metrics;
  options.test = {share_of("threshold", request.threshold, 0, 100),
                  share_of("confidence", request.confidence, 50, 99.99999),
                  share_of("run-to-run", request.run_to_run, 0, 100), statistic_of(request.statistic),
                  share_of("states", request.states, 0, 100)};
  const auto across = comma_separated(request.across);
  options.rules = {{across.begin(), across.end()}, request.any};
  options.dollars_per_gpu_hour = dollars_in(request.cost);
  if (asked.report.side_by_side && !options.dollars_per_gpu_hour.empty())
    throw UsageError("--side-by-side has no place for --cost; leave one of them out");
  return asked;
}

// Prints a folder with runs of several things: the overview, then the comparison of each group that shares cases.
int compare_overview(Overview overview, const Checked& asked) {
  if (!asked.options.dollars_per_gpu_hour.empty())
    throw UsageError(
        fmt::format("--cost has a price for each side, but {} holds runs of several experiments; name the "
                    "runs to compare",
                    overview.folder));
  warn(overview.warnings);
  std::vector<std::string> parts, reasons, without_metric;
  std::string missing_metric;
  Checked of_group = asked;
  for (std::size_t group = 0; group < overview.groups.size(); ++group) {
    of_group.report.tells_test = asked.report.tells_test && group + 1 == overview.groups.size();
    const std::string title = group_title(overview, group);
    try {
      const Comparison comparison = compare_group(overview, group, asked.options);
      for (const std::string& reason : reasons_to_fail(comparison, asked.fail_if))
        reasons.push_back(fmt::format("{}: {}", title, reason));
      std::string text = spelt(comparison, of_group);
      if (asked.format == "terminal") text = fmt::format("{}\n\n{}", title, text);
      if (asked.format == "markdown") text = fmt::format("# {}\n\n{}", title, text);
      parts.push_back(std::move(text));
    } catch (const NoMetricError& e) {
      missing_metric = e.what();
      overview.skipped.push_back(fmt::format("{}: {}", title, e.what()));
    }
  }
  if (parts.empty() && !missing_metric.empty()) throw UsageError(missing_metric);
  if (parts.empty() && asked.fail_if.asks()) reasons.emplace_back("nothing could be compared");
  if (asked.format == "json") {
    fmt::print("{}", overview_json(overview, parts));
  } else if (asked.format == "csv") {
    fmt::print("{}", overview_csv(overview));
  } else {
    const bool is_markdown = asked.format == "markdown";
    parts.insert(parts.begin(), is_markdown ? overview_markdown(overview)
                                            : overview_text(overview, results::table_width(STDOUT_FILENO)));
    fmt::print("{}", fmt::join(parts, "\n"));
  }
  return exit_for(reasons);
}

bool has_records(const Side& side) {
  return std::any_of(side.runs.begin(), side.runs.end(), [](const ComparedRun& run) { return !run.records.empty(); });
}

// The baseline has records, and so has another side.
void require_records(const std::vector<Side>& sides) {
  const auto with_records = std::count_if(sides.begin(), sides.end(), has_records);
  if (has_records(sides.front()) && (with_records > 1 || sides.size() == 1)) return;
  const auto without = std::find_if_not(sides.begin(), sides.end(), has_records);
  throw UsageError(fmt::format("nothing can be compared: {} has no record of a finished case; name a run that has some",
                               without->name));
}

// Inputs that may differ are inputs: a slip would change nothing, without a word.
void require_inputs(const std::vector<Side>& sides, const std::set<std::string>& across) {
  std::set<std::string> inputs{across_workloads}, settings{record::ranks_axis, threads_key, "run.device"};
  for (const Side& side : sides)
    for (const ComparedRun& run : side.runs)
      for (const record::CaseRecord& record : run.records) {
        inputs.merge(std::set<std::string>(CaseInputs(record).keys()));
        for (const auto& setting : record.identity.settings) settings.insert(setting.first);
      }
  for (const std::string& key : across)
    if (!inputs.contains(key) && !settings.contains(key))
      throw UsageError(fmt::format("--across {}: no case has an input of this name{}", key,
                                   known_instead(key, {inputs.begin(), inputs.end()})));
}

// ": pass, precision", what cases of the side differ in.
std::string axes_text(const Side& side) {
  std::map<std::string, std::set<std::string>> values;
  for (const ComparedRun& run : side.runs)
    for (const record::CaseRecord& record : run.records)
      for (const auto& [key, value] : record.identity.axes) values[key].insert(to_text(value));
  std::vector<std::string> axes;
  for (const auto& [key, seen] : values)
    if (seen.size() > 1) axes.push_back(one_line(key));
  return axes.empty() ? "" : fmt::format(": {}", fmt::join(axes, ", "));
}

}  // namespace

int compare_runs(const CompareRequest& request) {
  const Checked asked = checked(request);
  const bool splits = !asked.split.keys.empty();
  if (asked.runs.size() == 1 && !splits && asked.folders == FolderOfRuns::sides)
    if (auto overview = overview_of(asked.runs.front())) return compare_overview(std::move(*overview), asked);
  Sides read = read_sides(asked.runs, asked.folders);
  warn(read.warnings);
  std::vector<Side> sides = std::move(read.sides);
  require_records(sides);
  ComparisonOptions options = asked.options;
  require_inputs(sides, options.rules.across);
  std::vector<std::string> side_notes;
  if (splits) {
    if (sides.size() != 1)
      throw UsageError(
          fmt::format("--by splits one side, and there are {}; expected one run, or several of the same "
                      "thing separated by commas, or a folder of them with --group",
                      sides.size()));
    SplitSide split = split_side(sides.front(), asked.split);
    sides = std::move(split.sides);
    side_notes = std::move(split.notes);
    options.rules.across.merge(split.across);
  }
  if (sides.size() < 2 && asked.runs.size() > 1)
    throw UsageError(fmt::format("{} are one run, and a run is not compared with itself; name another run",
                                 fmt::join(asked.runs, " and ")));
  if (sides.size() < 2)
    throw UsageError(
        fmt::format("{} is one run; expected two or more to compare, or --by with an input that varies "
                    "within it{}",
                    sides[0].name, axes_text(sides[0])));
  const std::size_t costs = options.dollars_per_gpu_hour.size();
  if (costs != 0 && costs != sides.size())
    throw UsageError(fmt::format("--cost has {} for {} sides; expected one for each", costs, sides.size()));
  Comparison comparison = compare_sides(std::move(sides), options);
  comparison.side_notes = std::move(side_notes);
  fmt::print("{}", spelt(comparison, asked));
  return exit_for(reasons_to_fail(comparison, asked.fail_if));
}

}  // namespace assay::host::compare
