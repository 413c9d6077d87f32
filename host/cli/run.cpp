// assay run EXPERIMENT.toml
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <variant>

#include "cli/options.hpp"
#include "cli/output_place.hpp"
#include "cli/reporter.hpp"
#include "cli/set_instead.hpp"
#include "common/files.hpp"
#include "experiment/parse.hpp"
#include "plugin/search.hpp"
#include "results/case_text.hpp"
#include "run/experiment_run.hpp"
#include "run/follower.hpp"
#include "run/plan.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* about =
    "Validates the experiment, runs each of its cases in a worker process, and leaves the results below\n"
    "results/NAME/. All mistakes of the file are reported in one pass, before anything starts.";

Arguments list_of(const po::variables_map& values, const char* name) {
  return values.count(name) ? values[name].as<Arguments>() : Arguments{};
}

po::options_description visible_options() {
  po::options_description visible("Options");
  const auto text = [] { return po::value<std::string>(); };
  const auto texts = [] { return po::value<Arguments>()->composing(); };
  visible.add_options()("set", texts(),
                        "key=value: change a parameter or a setting of the file (dotted names); repeatable")(
      "filter", texts(), "key=value: run only the cases that match; repeatable")("dry-run",
                                                                                 "print the cases, start nothing")(
      "resume", "go on with the newest run of this experiment: finished cases are not run again")(
      "output", text(),
      "folder for results instead of [output] dir; or a file that ends in .csv, .md or .json: that view of the run "
      "goes there, too")("plugin-path", texts(), "folder with plugins, searched first; repeatable")(
      "in-process", "run cases in this process, for a debugger; a crash ends the run")("quiet", "print errors only")(
      "json", "print one JSON event per line on standard output");
  return visible;
}

void print_cases(const experiment::Experiment& experiment) {
  fmt::print("{}: {} cases\n", experiment.name, experiment.cases.size());
  for (const experiment::Case& c : experiment.cases) {
    const std::string label = results::case_label(c.axes);
    fmt::print("  {:>3}  {}\n", c.index + 1, label.empty() ? "(no sweep)" : label);
  }
}

// Of the processes of a launch one speaks for all.
std::optional<wireup::LaunchedRank> rank_of_this_launch() {
  const auto launched = wireup::launched_rank([](const char* name) { return std::getenv(name); });
  return launched && launched->size > 1 ? launched : std::nullopt;
}

int report(const std::vector<experiment::Mistake>& mistakes) {
  for (const experiment::Mistake& mistake : mistakes) fmt::print(stderr, "{}\n", mistake.to_string());
  fmt::print(stderr, "{} mistake{}; nothing was started\n", mistakes.size(), mistakes.size() == 1 ? "" : "s");
  return run::exit_usage;
}

ParsedOptions parsed_options(const Arguments& arguments) try {
  return parse_options(arguments, "assay run EXPERIMENT.toml [options]", about, visible_options(), "experiment");
} catch (const UnknownOption& e) {
  if (e.has_near()) throw;
  throw UsageError(fmt::format("{}; {}", e.what(), set_instead(arguments, e.option())));
}

}  // namespace

int run_command(const Arguments& arguments) {
  const ParsedOptions options = parsed_options(arguments);
  if (options.help) return run::exit_ok;
  const po::variables_map& values = options.values;
  if (!values.count("experiment")) throw UsageError("run needs an experiment file");
  if (values.count("quiet") && values.count("json")) throw UsageError("--quiet and --json exclude each other");
  const fs::path file = list_of(values, "experiment").front();

  Arguments settings = list_of(values, "set");
  const experiment::ExperimentFile parsed = experiment::ExperimentFile::read(file, settings);
  std::vector<experiment::Mistake> more;
  std::optional<run::RunTarget> target;
  if (parsed.plugin()) {
    try {
      const fs::path base = file.has_parent_path() ? file.parent_path() : fs::path(".");
      target = run::open_target(
          plugin::find_workload(*parsed.plugin(), plugin::plugin_folders(list_of(values, "plugin-path")), base));
    } catch (const plugin::PluginError& e) {
      more.push_back(parsed.plugin_mistake(e.what()));
    }
  }
  experiment::ParseResult result = parsed.finish(target ? &target->schema : nullptr, list_of(values, "filter"), more);
  const std::optional<wireup::LaunchedRank> launched = rank_of_this_launch();
  const bool follows = launched && launched->rank > 0;
  if (!result.mistakes.empty()) return follows ? run::exit_usage : report(result.mistakes);
  experiment::Experiment& experiment = *result.experiment;
  std::optional<results::ViewFile> view_file;
  if (values.count("output")) {
    const auto place = output_place(values["output"].as<std::string>());
    if (const auto* folder = std::get_if<fs::path>(&place)) experiment.output.dir = *folder;
    if (const auto* view = std::get_if<results::ViewFile>(&place)) view_file = *view;
  }
  if (values.count("dry-run")) {
    if (!follows) print_cases(experiment);
    return run::exit_ok;
  }
  if (follows) return run::follow(*launched, experiment.output.dir, run::run_wide_settings(experiment).wireup_timeout);
  if (view_file) check_writable(*view_file);

  const ReportMode mode = values.count("json")    ? ReportMode::json
                          : values.count("quiet") ? ReportMode::quiet
                                                  : ReportMode::people;
  Reporter reporter(mode);
  return run::run_experiment(
      experiment, *target, {values.count("resume") > 0, values.count("in-process") > 0, view_file, launched}, reporter);
}

}  // namespace assay::host::cli
