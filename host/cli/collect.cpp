// assay collect RUN | FOLDER...
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "batch/collect.hpp"
#include "cli/batch_commands.hpp"
#include "cli/load_experiment.hpp"
#include "cli/options.hpp"
#include "cli/output_place.hpp"
#include "cli/reporter.hpp"
#include "compare/node_ranking.hpp"
#include "results/reader.hpp"
#include "results/store.hpp"
#include "run/plan.hpp"
#include "run/run_records.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* about_collect =
    "Brings the records of a batch's shards into the folder of its run, with tables and summary, as if one machine "
    "had\n"
    "run it: at any time, while jobs run, and again. With several folders (the parts that `assay run --shard K/N`\n"
    "leaves) it makes one run of them.";

void say(const batch::Collected& collected, const po::variables_map& values) {
  for (const std::string& note : collected.notes) fmt::print(stderr, "note: {}\n", note);
  if (values.count("quiet") || values.count("json")) return;
  fmt::print("collected: {} record{}, {} of them new\n", collected.records, collected.records == 1 ? "" : "s",
             collected.added);
}

// The nodes that the experiment names, in its order.
std::vector<std::string> nodes_named(const experiment::Experiment& experiment) {
  std::vector<std::string> nodes;
  for (const experiment::Case& c : experiment.cases)
    if (c.cluster.node && std::find(nodes.begin(), nodes.end(), *c.cluster.node) == nodes.end())
      nodes.push_back(*c.cluster.node);
  return nodes;
}

// Tables and summary as a run leaves them; 0 when every case is there and ok.
int show(const LoadedExperiment& loaded, const fs::path& run, const po::variables_map& values, bool is_batch) {
  std::optional<results::ViewFile> view_file;
  if (values.count("output")) {
    const auto place = output_place(values["output"].as<std::string>());
    if (const auto* view = std::get_if<results::ViewFile>(&place)) view_file = *view;
    if (view_file) check_writable(*view_file);
    if (!view_file && is_batch)
      throw UsageError(
          "--output with a batch names a .csv, .md or .json file: its records belong to the folder of its run");
  }
  results::CasesFile cases = results::read_cases(run / "cases.jsonl");
  const experiment::Experiment experiment = batch::as_recorded(loaded.experiment, cases.records);
  const results::Views views = results::write_views(run, experiment, std::move(cases), view_file);
  const auto allow = run::run_wide_settings(experiment).allow;
  const bool is_good = views.named_file_error.empty() && run::are_ok_or_allowed(views.records, experiment, allow);
  const int code = is_good ? run::exit_ok : run::exit_failed;
  Reporter reporter(values.count("quiet")  ? ReportMode::quiet
                    : values.count("json") ? ReportMode::json
                                           : ReportMode::people);
  reporter.run_finished(experiment, views, run.string(), false, code);
  const auto ranking = compare::rank_nodes(views.records, {}, nodes_named(experiment));
  if (ranking && values.count("json"))
    fmt::print("{}\n", nlohmann::ordered_json{{"event", "node_ranking"}, {"slow_or_failing", ranking->named()}}.dump());
  else if (ranking && !values.count("quiet"))
    fmt::print("\n{}", compare::node_ranking_text(*ranking));
  if (!values.count("quiet") && !values.count("json") && views.records.size() < experiment.cases.size())
    fmt::print("{} of {} cases have a record\n", views.records.size(), experiment.cases.size());
  return code;
}

int collect_parts(const std::vector<fs::path>& folders, const po::variables_map& values) {
  std::optional<std::string> experiment_text;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / "experiment.toml", ignored))
      throw UsageError(fmt::format("{} is no run folder: expected an experiment.toml in it", folder.string()));
    const std::string text = read_file(folder / "experiment.toml");
    if (!experiment_text) experiment_text = text;
    if (text != *experiment_text)
      throw UsageError(
          fmt::format("{} and {} are runs of different experiments (diff their experiment.toml); expected parts of one",
                      folders.front().string(), folder.string()));
  }
  batch::check_parts(folders);
  // As if beside the first part: relative paths of the experiment were found when the parts ran.
  ExperimentSource source;
  source.file = folders.front() / "experiment.toml";
  source.plugin_folders = values.count("plugin-path") ? values["plugin-path"].as<Arguments>() : Arguments{};
  LoadResult loaded = load_experiment(source);
  if (!loaded.loaded) return report_mistakes(loaded.mistakes);
  fs::path dir = fs::absolute(folders.front()).lexically_normal().parent_path().parent_path();
  if (values.count("output"))
    if (const auto place = output_place(values["output"].as<std::string>()); std::holds_alternative<fs::path>(place))
      dir = std::get<fs::path>(place);
  fs::path run;
  {
    auto folder = results::RunFolder::create(dir, loaded.loaded->experiment.name, *experiment_text, "{}");
    folder.become_latest();
    for (const std::string& note : folder.notes()) fmt::print(stderr, "note: {}\n", note);
    run = folder.path();
  }
  say(batch::merge_runs(run, folders), values);
  return show(*loaded.loaded, run, values, false);
}

}  // namespace

int collect_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()(
      "output", po::value<std::string>(),
      "a .csv, .md or .json file for a view of the run; or, with several folders, a folder for results")(
      "plugin-path", po::value<Arguments>()->composing(), "folder with plugins, searched first; repeatable")(
      "quiet", "print no table")("json", "print one JSON event per line on standard output");
  const ParsedOptions options =
      parse_options(arguments, "assay collect RUN | FOLDER... [options]", about_collect, visible, "run", -1);
  if (options.help) return run::exit_ok;
  if (!options.values.count("run"))
    throw UsageError("collect needs the folder of a run that was submitted as a batch, or of several runs");
  if (options.values.count("quiet") && options.values.count("json"))
    throw UsageError("--quiet and --json exclude each other");
  const auto given = options.values["run"].as<std::vector<std::string>>();
  if (given.size() > 1) return collect_parts({given.begin(), given.end()}, options.values);
  const fs::path run = batch_run(given.front());
  const batch::Submission submission = batch::read_submission(run);
  LoadResult loaded = load_submitted(run / "experiment.toml", submission.experiment_file, submission.plugin_file);
  if (!loaded.loaded) return report_mistakes(loaded.mistakes);
  const batch::Collected collected = batch::collect_batch(run, submission);
  say(collected, options.values);
  // Cases that a filter left out were never submitted.
  const std::set<std::int64_t> submitted = batch::submitted_cases(run, submission);
  std::erase_if(loaded.loaded->experiment.cases,
                [&](const experiment::Case& c) { return !submitted.contains(c.index); });
  return show(*loaded.loaded, run, options.values, true);
}

}  // namespace assay::host::cli
