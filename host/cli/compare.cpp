// assay compare
#include "compare/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "cli/options.hpp"
#include "cli/statistic_option.hpp"
#include "common/filter.hpp"
#include "common/text_format.hpp"
#include "common/value.hpp"
#include "compare/overview.hpp"
#include "compare/report.hpp"
#include "compare/sides.hpp"
#include "compare/split.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kAbout =
    "Puts runs beside each other, the first one being the baseline: the same cases, their ratio with an\n"
    "interval, and a verdict. RUN is a run folder, a cases.jsonl, a summary bench_*.json, or a folder with\n"
    "several of these below it, each then a side of its own. Several runs of one side are joined by commas:\n"
    "'assay compare a1,a2,a3 b1,b2,b3'. Take them in turns (a1, b1, a2, ...): what changes about the machine\n"
    "meanwhile then meets both sides.\n\n"
    "With --by the cases of one run are the sides: 'assay compare RUN --by execution --baseline eager'. Of a\n"
    "folder with runs of several experiments an overview comes first: 'assay compare results'.";

std::vector<std::string> split(const std::vector<std::string>& texts) {
  std::vector<std::string> parts;
  for (const std::string& text : texts)
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      if (end > begin) parts.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  return parts;
}

compare::FailIf fail_if_of(const std::vector<std::string>& words) {
  compare::FailIf fail_if;
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
      throw UsageError(
          fmt::format("--fail-if is '{}'; expected slower, differs, cannot-tell, unmatched, or several of "
                      "them separated by commas",
                      word));
  }
  return fail_if;
}

double percent(const po::variables_map& values, const char* name, double low, double high) {
  const double value = values[name].as<double>();
  if (!(value >= low && value <= high))
    throw UsageError(fmt::format("--{} is {}; expected a percentage from {} to {}", name, value, low, high));
  return value / 100;
}

// "3.00", "5.50", or "3.00,5.50".
std::vector<double> dollars_in(const Arguments& given) {
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

po::options_description options() {
  po::options_description visible("Options");
  const auto texts = [] { return po::value<std::vector<std::string>>()->composing(); };
  visible.add_options()  //
      ("metric,m", texts(),
       "what to compare: step (the default), a phase, items_per_s or another rate, memory, a metric of the workload, "
       "or all; may be repeated, or several separated by commas")            //
      ("side-by-side", "all metrics in one table, without their intervals")  //
      ("by", texts(),
       "an input that varies within the run, such as execution: each of its values is a side; several separated by "
       "commas: each combination")  //
      ("baseline", po::value<std::string>(),
       "the value of --by that is the baseline, the first one otherwise; of several keys a value each, with commas")  //
      ("group", "a folder of several runs is one side of several runs")                                               //
      ("threshold", po::value<double>()->default_value(2, "2"), "percent that are still the same")                    //
      ("confidence", po::value<double>()->default_value(95, "95"), "percent, of the interval")                        //
      ("run-to-run", po::value<double>()->default_value(0.5, "0.5"),
       "percent by which runs of one thing are taken to differ at least; several runs a side show whether it is "
       "more")  //
      ("statistic", po::value<std::string>()->default_value(word_of(compare::TestOptions().statistic)),
       statistic_help)  //
      ("states", po::value<double>()->default_value(10, "10"),
       "percent by which two states of a machine may differ, in either of which a run may be; 0: it has one")  //
      ("across", texts(), "inputs that may differ, such as execution or context_length")                       //
      ("any", "compare cases of other numbers of ranks, too")                                                  //
      ("cost", po::value<Arguments>()->multitoken(),
       "dollars per GPU and hour, one per side in their order, also with commas: adds items per dollar")  //
      ("fail-if", texts(), "exit with 1 if a case is slower; also differs, cannot-tell, unmatched")       //
      ("explain", "say how it was tested, below the tables")                                              //
      ("format", po::value<std::string>()->default_value("terminal"), "or markdown, csv, json");
  return visible;
}

// Holds what the command line asks for.
struct Request {
  std::vector<std::string> runs;
  compare::FolderOfRuns folders = compare::FolderOfRuns::sides;
  compare::SplitRules split;
  compare::ComparisonOptions options;
  compare::ReportOptions report;
  compare::FailIf fail_if;
  std::string format;
};

std::string spelt(const compare::Comparison& comparison, const Request& request) {
  const compare::TestOptions& test = request.options.test;
  if (request.format == "terminal")
    return compare::comparison_text(comparison, test, results::table_width(STDOUT_FILENO), request.report);
  if (request.format == "markdown") return compare::comparison_markdown(comparison, test, request.report);
  if (request.format == "csv") return compare::comparison_csv(comparison, request.report);
  return compare::comparison_json(comparison, test);
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) results::say_on_stderr(warning);
}

int exit_for(const std::vector<std::string>& reasons) {
  for (const std::string& reason : reasons) fmt::print(stderr, "assay: failed: {}\n", reason);
  return reasons.empty() ? run::exit_ok : run::exit_failed;
}

Request request_of(const po::variables_map& values) {
  const auto texts = [&values](const char* name) {
    return values.count(name) ? values[name].as<std::vector<std::string>>() : std::vector<std::string>{};
  };
  Request request;
  request.format = values["format"].as<std::string>();
  request.report.palette = Palette::of(STDOUT_FILENO);
  const std::string& format = request.format;
  if (format != "terminal" && format != "markdown" && format != "csv" && format != "json")
    throw UsageError(fmt::format("--format is '{}'; expected terminal, markdown, csv or json", format));
  request.runs = texts("run");
  if (request.runs.empty()) throw UsageError("no run is given; expected at least two, or one with --by");
  if (values.count("group")) request.folders = compare::FolderOfRuns::one_side;
  request.fail_if = fail_if_of(split(texts("fail-if")));
  request.split.keys = split(texts("by"));
  request.report.by = fmt::format("{}", fmt::join(request.split.keys, ","));
  if (values.count("baseline")) request.split.baseline = values["baseline"].as<std::string>();
  if (request.split.baseline && request.split.keys.empty())
    throw UsageError("--baseline names a value of --by, and there is none; without --by the first run is the baseline");
  request.report.side_by_side = values.count("side-by-side") > 0;
  request.report.tells_test = values.count("explain") > 0;
  compare::ComparisonOptions& options = request.options;
  if (const auto metrics = split(texts("metric")); !metrics.empty()) options.metrics = metrics;
  options.test = {percent(values, "threshold", 0, 100), percent(values, "confidence", 50, 99.99999),
                  percent(values, "run-to-run", 0, 100), statistic_of(values["statistic"].as<std::string>()),
                  percent(values, "states", 0, 100)};
  const auto across = split(texts("across"));
  options.rules = {{across.begin(), across.end()}, values.count("any") > 0};
  if (values.count("cost")) options.dollars_per_gpu_hour = dollars_in(list_of(values, "cost"));
  if (request.report.side_by_side && !options.dollars_per_gpu_hour.empty())
    throw UsageError("--side-by-side has no place for --cost; leave one of them out");
  return request;
}

// Prints a folder with runs of several things: the overview, then the comparison of each group that shares cases.
int compare_overview(compare::Overview overview, const Request& request) {
  if (!request.options.dollars_per_gpu_hour.empty())
    throw UsageError(
        fmt::format("--cost has a price for each side, but {} holds runs of several experiments; name the "
                    "runs to compare",
                    overview.folder));
  warn(overview.warnings);
  std::vector<std::string> parts, reasons, without_metric;
  std::string missing_metric;
  Request of_group = request;
  for (std::size_t group = 0; group < overview.groups.size(); ++group) {
    of_group.report.tells_test = request.report.tells_test && group + 1 == overview.groups.size();
    const std::string title = compare::group_title(overview, group);
    try {
      const compare::Comparison comparison = compare::compare_group(overview, group, request.options);
      for (const std::string& reason : compare::reasons_to_fail(comparison, request.fail_if))
        reasons.push_back(fmt::format("{}: {}", title, reason));
      std::string text = spelt(comparison, of_group);
      if (request.format == "terminal") text = fmt::format("{}\n\n{}", title, text);
      if (request.format == "markdown") text = fmt::format("# {}\n\n{}", title, text);
      parts.push_back(std::move(text));
    } catch (const compare::NoMetricError& e) {
      missing_metric = e.what();
      overview.skipped.push_back(fmt::format("{}: {}", title, e.what()));
    }
  }
  if (parts.empty() && !missing_metric.empty()) throw UsageError(missing_metric);
  if (parts.empty() && request.fail_if.asks()) reasons.emplace_back("nothing could be compared");
  if (request.format == "json") {
    fmt::print("{}", compare::overview_json(overview, parts));
  } else if (request.format == "csv") {
    fmt::print("{}", compare::overview_csv(overview));
  } else {
    const bool is_markdown = request.format == "markdown";
    parts.insert(parts.begin(), is_markdown ? compare::overview_markdown(overview)
                                            : compare::overview_text(overview, results::table_width(STDOUT_FILENO)));
    fmt::print("{}", fmt::join(parts, "\n"));
  }
  return exit_for(reasons);
}

// ": pass, precision", what cases of the side differ in.
std::string axes_of(const compare::Side& side) {
  std::map<std::string, std::set<std::string>> values;
  for (const compare::ComparedRun& run : side.runs)
    for (const record::CaseRecord& record : run.records)
      for (const auto& [key, value] : record.identity.axes) values[key].insert(to_text(value));
  std::vector<std::string> axes;
  for (const auto& [key, seen] : values)
    if (seen.size() > 1) axes.push_back(one_line(key));
  return axes.empty() ? "" : fmt::format(": {}", fmt::join(axes, ", "));
}

int compare_runs(const Request& request) {
  const bool splits = !request.split.keys.empty();
  if (request.runs.size() == 1 && !splits && request.folders == compare::FolderOfRuns::sides)
    if (auto overview = compare::overview_of(request.runs.front()))
      return compare_overview(std::move(*overview), request);
  compare::Sides read = compare::read_sides(request.runs, request.folders);
  warn(read.warnings);
  std::vector<compare::Side> sides = std::move(read.sides);
  compare::ComparisonOptions options = request.options;
  std::vector<std::string> side_notes;
  if (splits) {
    if (sides.size() != 1)
      throw UsageError(
          fmt::format("--by splits one side, and there are {}; expected one run, or several of the same "
                      "thing separated by commas, or a folder of them with --group",
                      sides.size()));
    compare::SplitSide split = compare::split_side(sides.front(), request.split);
    sides = std::move(split.sides);
    side_notes = std::move(split.notes);
    options.rules.across.merge(split.across);
  }
  if (sides.size() < 2 && request.runs.size() > 1)
    throw UsageError(fmt::format("{} are one run, and a run is not compared with itself; name another run",
                                 fmt::join(request.runs, " and ")));
  if (sides.size() < 2)
    throw UsageError(
        fmt::format("{} is one run; expected two or more to compare, or --by with an input that varies "
                    "within it{}",
                    sides[0].name, axes_of(sides[0])));
  const std::size_t costs = options.dollars_per_gpu_hour.size();
  if (costs != 0 && costs != sides.size())
    throw UsageError(fmt::format("--cost has {} for {} sides; expected one for each", costs, sides.size()));
  compare::Comparison comparison = compare::compare_sides(std::move(sides), options);
  comparison.side_notes = std::move(side_notes);
  fmt::print("{}", spelt(comparison, request));
  return exit_for(compare::reasons_to_fail(comparison, request.fail_if));
}

}  // namespace

int compare_command(const Arguments& arguments) {
  const ParsedOptions parsed =
      parse_options(arguments, "assay compare RUN [RUN ...] [options]", kAbout, options(), "run", -1);
  if (parsed.help) return run::exit_ok;
  try {
    return compare_runs(request_of(parsed.values));
  } catch (const compare::NoRunError& e) {
    throw UsageError(e.what());
  } catch (const compare::NoMetricError& e) {
    throw UsageError(e.what());
  } catch (const compare::SplitError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace assay::host::cli
