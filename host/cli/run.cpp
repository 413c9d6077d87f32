// assay run EXPERIMENT.toml
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <variant>

#include "cli/dry_run.hpp"
#include "cli/forecast_of.hpp"
#include "cli/job_environment.hpp"
#include "cli/load_experiment.hpp"
#include "cli/options.hpp"
#include "cli/output_place.hpp"
#include "cli/reporter.hpp"
#include "cli/set_instead.hpp"
#include "common/files.hpp"
#include "common/sha256.hpp"
#include "record/status.hpp"
#include "results/terminal.hpp"
#include "run/experiment_run.hpp"
#include "run/follower.hpp"
#include "run/plan.hpp"
#include "run/resumption.hpp"
#include "run/shard_run.hpp"
#include "shard/shard_plan.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* about =
    "Validates the experiment, runs each of its cases in a worker process, and leaves the results below\n"
    "results/NAME/. All mistakes of the file are reported in one pass, before anything starts. Several\n"
    "experiments run one after the other.";

// How long the processes of a shard wait for one another: the one that leads first asks the scheduler about the attempt
// before it.
constexpr std::chrono::minutes wireup_patience{5};

po::options_description visible_options() {
  po::options_description visible("Options");
  const auto text = [] { return po::value<std::string>(); };
  const auto texts = [] { return po::value<Arguments>()->composing(); };
  visible.add_options()("set", texts(),
                        "key=value: change a parameter or a setting of the file (dotted names); repeatable")(
      "filter", texts(),
      "key=value, or with a list (size=small,base), !=, <, <=, >, >=: run only the cases that match; "
      "repeatable")(
      "dry-run",
      "print the cases, with --resume which of them are done, and what they will take here (`assay plan` tells it for "
      "other devices); run nothing")(
      "resume",
      "go on with the newest run of this experiment, which may have grown by values of its axes: finished cases are "
      "not "
      "run again, unless other code or another machine has made them")(
      "new", "with --resume: start a new run where the experiment differs otherwise from that of the newest one")(
      "any-machine", "with --resume: cases that another machine has finished count")(
      "output", text(),
      "folder for results instead of [output] dir; or a file that ends in .csv, .md or .json: that view of the run "
      "goes there, too")("plugin-path", texts(), "folder with plugins, searched first; repeatable")(
      "in-process", "run cases in this process, for a debugger; a crash ends the run")(
      "shard", text(),
      "K/N: the Kth of N parts of the cases, for an array of jobs (`assay collect` brings the parts together); or the "
      "folder of a shard of a batch, in its script")(
      "until", po::value<std::int64_t>(), "with the folder of a shard: when its job ends, in seconds since 1970")(
      "quiet", "print errors alone, on standard error")("json", "print one JSON event per line on standard output");
  return visible;
}

run::RunOptions options_of_run(const po::variables_map& values, const std::optional<results::ViewFile>& view_file,
                               const std::optional<wireup::LaunchedRank>& launched,
                               const std::optional<run::SweepPart>& part) {
  run::RunOptions options;
  options.resume = values.count("resume") > 0;
  options.start_new = values.count("new") > 0;
  options.any_machine = values.count("any-machine") > 0;
  options.in_process = values.count("in-process") > 0;
  options.view_file = view_file, options.launched = launched, options.part = part;
  return options;
}

std::string toml_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return quoted + "\"";
}

// Of the processes of a launch one speaks for all.
std::optional<wireup::LaunchedRank> rank_of_this_launch() {
  const auto launched = wireup::launched_rank([](const char* name) { return std::getenv(name); });
  return launched && launched->size > 1 ? launched : std::nullopt;
}

ParsedOptions parsed_options(const Arguments& arguments) try {
  return parse_options(arguments, "assay run EXPERIMENT.toml... [options]", about, visible_options(), "experiment", -1);
} catch (const UnknownOption& e) {
  if (e.has_near()) throw;
  throw UsageError(fmt::format("{}; {}", e.what(), set_instead(arguments, e.option())));
}

ReportMode report_mode(const po::variables_map& values) {
  if (values.count("json")) return ReportMode::json;
  return values.count("quiet") ? ReportMode::quiet : ReportMode::people;
}

// "2/8": the second of eight parts. What is no such text is the folder of a shard.
std::optional<run::SweepPart> part_in(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto is_number = [](std::string_view digits) {
    return !digits.empty() && digits.size() < 7 && digits.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (slash == std::string::npos || !is_number(std::string_view(text).substr(0, slash)) ||
      !is_number(std::string_view(text).substr(slash + 1)))
    return std::nullopt;
  const run::SweepPart part{std::stoll(text), std::stoll(text.substr(slash + 1))};
  if (part.number < 1 || part.number > part.count)
    throw UsageError(fmt::format("--shard is {}; expected K/N with K from 1 to N, or the folder of a shard", text));
  return part;
}

// Every Nth case, so that parts of a sweep that grows take about as long.
void keep_part(experiment::Experiment& experiment, const run::SweepPart& part) {
  std::erase_if(experiment.cases, [&](const experiment::Case& c) { return c.index % part.count != part.number - 1; });
  if (experiment.cases.empty())
    throw UsageError(fmt::format("--shard {}/{} has no case: {} has fewer cases than parts", part.number, part.count,
                                 experiment.name));
}

int run_shard_of_batch(const po::variables_map& values, const std::vector<fs::path>& files, const fs::path& folder) {
  if (files.size() != 1)
    throw UsageError("--shard with the folder of a shard takes one file, the experiment.toml of its run");
  for (const char* option : {"set", "filter", "resume", "output", "in-process", "dry-run"})
    if (values.count(option)) throw UsageError(fmt::format("--{} does not go with the folder of a shard", option));
  run::ShardOptions options;
  options.folder = folder;
  options.start = start_of_this_job();
  options.nodes = nodes_of_this_job();
  options.launched = rank_of_this_launch();
  options.is_over = is_attempt_over;
  if (values.count("until"))
    options.until = std::chrono::system_clock::time_point(std::chrono::seconds(values["until"].as<std::int64_t>()));
  if (options.launched && options.launched->rank > 0) {
    std::signal(SIGUSR1, SIG_IGN);  // it is for the process that leads
    const int code = run::follow(*options.launched, folder, wireup_patience);
    // The verdict of the one that leads counts, and srun must not end it because this one was told to end first.
    return code == run::exit_interrupted ? run::exit_ok : code;
  }
  // What cannot be mended by another start must not look like a job that was killed.
  try {
    options.plan = shard::read_shard_plan(folder);
    options.experiment_hash = sha256_of_file(files.front());
    LoadResult result = load_submitted(files.front(), options.plan.experiment_file, options.plan.plugin_file);
    if (!result.loaded) {
      run::write_verdict(folder, options.start, run::Verdict::failed);
      return report_mistakes(result.mistakes);
    }
    Reporter reporter(report_mode(values));
    return run::run_shard(result.loaded->experiment, result.loaded->target, options, reporter);
  } catch (const StorageError&) {
    run::write_verdict(folder, options.start, run::Verdict::failed);
    throw;
  } catch (const std::system_error&) {
    run::write_verdict(folder, options.start, run::Verdict::failed);
    throw;
  }
}

// What a launch of several experiments is to its ranks: as many launches, one after the other.
std::optional<wireup::LaunchedRank> nth_launch(std::optional<wireup::LaunchedRank> launched, std::size_t n) {
  if (launched && n > 0) launched->job_id += fmt::format("-{}", n + 1);
  return launched;
}

// Says what the plugins refuse, before anything starts. An experiment that allows failed cases wants to see them, and
// in this process a debugger waits for them.
int report_refused_cases(const std::vector<LoadedExperiment>& experiments, const po::variables_map& values,
                         const std::optional<wireup::LaunchedRank>& launched, bool is_quiet) {
  std::vector<experiment::Mistake> mistakes;
  std::size_t refused = 0, cases = 0;
  if (values.count("in-process")) return run::exit_ok;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    const LoadedExperiment& each = experiments[i];
    const std::vector<std::string> allow = run::run_wide_settings(each.experiment).allow;
    if (std::find(allow.begin(), allow.end(), record::name_of(record::Status::failed)) != allow.end()) continue;
    RefusedByPlugin found = refused_by_plugin(each, nth_launch(launched, i));
    mistakes.insert(mistakes.end(), found.mistakes.begin(), found.mistakes.end());
    refused += found.cases, cases += each.experiment.cases.size();
  }
  if (mistakes.empty()) return run::exit_ok;
  if (is_quiet) return run::exit_usage;
  if (refused < cases)
    fmt::print(stderr, "{}",
               results::line_on_terminal(
                   fmt::format("{} of {} cases {} refused; --filter runs the others, and [run] allow = [\"failed\"] "
                               "runs all of them and records what is refused",
                               refused, cases, refused == 1 ? "is" : "are"),
                   STDERR_FILENO));
  return report_mistakes(mistakes);
}

int run_experiments(const Arguments& arguments) {
  const ParsedOptions options = parsed_options(arguments);
  if (options.help) return run::exit_ok;
  const po::variables_map& values = options.values;
  if (!values.count("experiment")) throw UsageError("run needs an experiment file");
  for (const char* option : {"new", "any-machine"})
    if (values.count(option) && !values.count("resume"))
      throw UsageError(fmt::format("--{} goes with --resume; without it each run is a new one", option));
  if (values.count("quiet") && values.count("json")) throw UsageError("--quiet and --json exclude each other");
  std::vector<fs::path> files;
  for (const std::string& file : list_of(values, "experiment")) files.emplace_back(file);
  std::optional<run::SweepPart> part;
  if (values.count("shard")) {
    const auto text = values["shard"].as<std::string>();
    part = part_in(text);
    if (!part) return run_shard_of_batch(values, files, text);
  }
  if (values.count("until")) throw UsageError("--until goes with --shard and the folder of a shard alone");

  std::optional<results::ViewFile> view_file;
  Arguments set = list_of(values, "set");
  if (values.count("output")) {
    const auto place = output_place(values["output"].as<std::string>());
    // As if the file said so: the run's own experiment.toml then does.
    if (const auto* folder = std::get_if<fs::path>(&place))
      set.push_back("output.dir=" + toml_string(folder->string()));
    if (const auto* view = std::get_if<results::ViewFile>(&place)) view_file = *view;
    if (view_file && files.size() > 1)
      throw UsageError("--output names a file, and there are several experiments; expected a folder");
  }

  const std::optional<wireup::LaunchedRank> launched = rank_of_this_launch();
  const bool follows = launched && launched->rank > 0;
  std::vector<LoadedExperiment> experiments;
  std::vector<experiment::Mistake> mistakes;
  for (const fs::path& file : files) {
    LoadResult result =
        load_experiment({file, std::nullopt, set, list_of(values, "filter"), list_of(values, "plugin-path")});
    if (result.loaded) experiments.push_back(std::move(*result.loaded));
    mistakes.insert(mistakes.end(), result.mistakes.begin(), result.mistakes.end());
  }
  if (!mistakes.empty()) return follows ? run::exit_usage : report_mistakes(mistakes);

  if (part)
    for (LoadedExperiment& each : experiments) keep_part(each.experiment, *part);
  if (values.count("dry-run")) {
    int worst = run::exit_ok;
    if (!follows)
      for (const LoadedExperiment& each : experiments)
        worst = std::max(
            worst, show_dry_run(each, options_of_run(values, std::nullopt, launched, part), values.count("json") > 0));
    return worst;
  }
  // Each rank of a launch finds it by itself: nobody waits for one that has left.
  if (const int code = report_refused_cases(experiments, values, launched, follows); code != run::exit_ok) return code;
  if (view_file && !follows) check_writable(*view_file);
  if (!launched)
    for (const LoadedExperiment& each : experiments)
      check_writable_folder(each.experiment.output.dir, each.experiment.name, values.count("output") && !view_file);

  int worst = run::exit_ok;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    const experiment::Experiment& experiment = experiments[i].experiment;
    const auto ranks = nth_launch(launched, i);
    int code = run::exit_ok;
    if (follows) {
      code = run::follow(*ranks, experiment.output.dir, run::run_wide_settings(experiment).wireup_timeout);
    } else {
      Reporter reporter(report_mode(values));
      code = run::run_experiment(experiment, experiments[i].target, options_of_run(values, view_file, ranks, part),
                                 reporter);
    }
    worst = std::max(worst, code);
    if (code == run::exit_interrupted) break;
  }
  return worst;
}

}  // namespace

int run_command(const Arguments& arguments) try {
  return run_experiments(arguments);
} catch (const run::ResumeRefused& e) {
  fmt::print(stderr, "{}", results::lines_on_terminal(fmt::format("assay: {}", e.what()), STDERR_FILENO));
  return run::exit_usage;
}

}  // namespace assay::host::cli
