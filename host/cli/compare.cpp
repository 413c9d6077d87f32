// assay compare
#include "compare/comparison.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/options.hpp"
#include "compare/report.hpp"
#include "compare/sides.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;

constexpr const char* kAbout =
    "Puts runs beside each other, the first one being the baseline: the same cases, their ratio with an\n"
    "interval, and a verdict. RUN is a run folder, a cases.jsonl, a summary bench_*.json, or a folder of\n"
    "several of these, each then a side of its own. Several runs of one side are joined by commas:\n"
    "'assay compare a1,a2,a3 b1,b2,b3'. Take them in turns (a1, b1, a2, ...): what changes about the machine\n"
    "meanwhile then meets both sides.";

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
    else
      throw UsageError(
          fmt::format("--fail-if is '{}'; expected slower, cannot-tell, unmatched, or several of them "
                      "separated by commas",
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

compare::Statistic statistic_of(const std::string& name) {
  if (name == "p05") return compare::Statistic::p05;
  if (name == "lower-quartile") return compare::Statistic::lower_quartile;
  if (name == "median") return compare::Statistic::median;
  if (name == "mean") return compare::Statistic::mean;
  throw UsageError(fmt::format("--statistic is '{}'; expected p05, lower-quartile, median or mean", name));
}

po::options_description options() {
  po::options_description visible("Options");
  const auto texts = [] { return po::value<std::vector<std::string>>()->composing(); };
  visible.add_options()  //
      ("metric,m", texts(),
       "what to compare: step (the default), a phase, items_per_s or another rate, memory, a metric of the workload; "
       "may be repeated, or several separated by commas")                                           //
      ("group", "a folder of several runs is one side of several runs")                             //
      ("threshold", po::value<double>()->default_value(2, "2"), "percent that are still the same")  //
      ("confidence", po::value<double>()->default_value(95, "95"), "percent, of the interval")      //
      ("run-to-run", po::value<double>()->default_value(0.5, "0.5"),
       "percent by which single runs of one thing differ beyond what their steps tell; several runs a side "
       "measure it instead")  //
      ("statistic", po::value<std::string>()->default_value("p05"),
       "or median, or mean: of a run's steps")                                            //
      ("across", texts(), "inputs that may differ, such as execution or context_length")  //
      ("any", "compare cases of other numbers of ranks, too")                             //
      ("cost", po::value<std::vector<double>>()->multitoken(),
       "dollars per GPU and hour, one per side in their order: adds items per dollar")      //
      ("fail-if", texts(), "exit with 1 if a case is slower; also cannot-tell, unmatched")  //
      ("format", po::value<std::string>()->default_value("terminal"), "or markdown, csv, json");
  return visible;
}

std::string spelt(const compare::Comparison& comparison, const compare::TestOptions& test, const std::string& format) {
  if (format == "terminal") return compare::comparison_text(comparison, test, results::terminal_width(STDOUT_FILENO));
  if (format == "markdown") return compare::comparison_markdown(comparison, test);
  if (format == "csv") return compare::comparison_csv(comparison);
  return compare::comparison_json(comparison, test);
}

}  // namespace

int compare_command(const Arguments& arguments) {
  const ParsedOptions parsed =
      parse_options(arguments, "assay compare RUN RUN [RUN ...] [options]", kAbout, options(), "run", -1);
  if (parsed.help) return run::exit_ok;
  const auto& values = parsed.values;
  const auto texts = [&values](const char* name) {
    return values.count(name) ? values[name].as<std::vector<std::string>>() : std::vector<std::string>{};
  };
  const std::string format = values["format"].as<std::string>();
  if (format != "terminal" && format != "markdown" && format != "csv" && format != "json")
    throw UsageError(fmt::format("--format is '{}'; expected terminal, markdown, csv or json", format));
  const compare::FailIf fail_if = fail_if_of(split(texts("fail-if")));
  compare::ComparisonOptions comparison_options;
  if (const auto metrics = split(texts("metric")); !metrics.empty()) comparison_options.metrics = metrics;
  comparison_options.test = {percent(values, "threshold", 0, 100), percent(values, "confidence", 50, 99.99),
                             percent(values, "run-to-run", 0, 100),
                             statistic_of(values["statistic"].as<std::string>())};
  const auto across = split(texts("across"));
  comparison_options.rules = {{across.begin(), across.end()}, values.count("any") > 0};
  if (values.count("cost")) comparison_options.dollars_per_gpu_hour = values["cost"].as<std::vector<double>>();
  for (const double dollars : comparison_options.dollars_per_gpu_hour)
    if (!(dollars > 0)) throw UsageError(fmt::format("--cost has {}; expected dollars above 0", dollars));

  try {
    if (!values.count("run")) throw UsageError("no run is given; expected at least two");
    compare::Sides sides = compare::read_sides(
        texts("run"), values.count("group") ? compare::FolderOfRuns::one_side : compare::FolderOfRuns::sides);
    for (const std::string& warning : sides.warnings) fmt::print(stderr, "assay: {}\n", warning);
    if (sides.sides.size() < 2)
      throw UsageError(fmt::format("{} is one run; expected two or more to compare", sides.sides[0].name));
    const std::size_t costs = comparison_options.dollars_per_gpu_hour.size();
    if (costs != 0 && costs != sides.sides.size())
      throw UsageError(fmt::format("--cost has {} for {} sides; expected one for each", costs, sides.sides.size()));
    const compare::Comparison comparison = compare::compare_sides(std::move(sides.sides), comparison_options);
    fmt::print("{}", spelt(comparison, comparison_options.test, format));
    const std::vector<std::string> reasons = compare::reasons_to_fail(comparison, fail_if);
    for (const std::string& reason : reasons) fmt::print(stderr, "assay: failed: {}\n", reason);
    return reasons.empty() ? run::exit_ok : run::exit_failed;
  } catch (const compare::NoRunError& e) {
    throw UsageError(e.what());
  } catch (const compare::NoMetricError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace assay::host::cli
