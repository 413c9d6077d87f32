#include "batch/collect_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "batch/collect.hpp"
#include "batch/named_batch.hpp"
#include "common/exit_code.hpp"
#include "common/usage_error.hpp"
#include "console/mistakes.hpp"
#include "console/reporter.hpp"
#include "results/output_place.hpp"
#include "results/reader.hpp"
#include "results/store.hpp"
#include "run/load_experiment.hpp"
#include "run/plan.hpp"
#include "run/run_records.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

void say(const Collected& collected, const CollectRequest& request) {
  for (const std::string& note : collected.notes) fmt::print(stderr, "note: {}\n", note);
  if (request.quiet || request.json) return;
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

// The nodes whose job only waits, or still runs: that they have no record is no finding.
std::set<std::string> nodes_still_open(const RunStatus& status, const experiment::Experiment& experiment) {
  std::set<std::int64_t> open;
  for (const CaseStatus& c : status.cases)
    if (c.state == CaseState::queued || c.state == CaseState::running || c.state == CaseState::unknown ||
        c.state == CaseState::unsubmitted || c.state == CaseState::blocked)
      open.insert(c.index);
  std::set<std::string> nodes;
  for (const experiment::Case& c : experiment.cases)
    if (c.cluster.node && open.contains(c.index)) nodes.insert(*c.cluster.node);
  return nodes;
}

// The nodes that are expected to have records. Of a batch that goes on the scheduler is asked which only wait.
std::vector<std::string> nodes_expected(const experiment::Experiment& experiment, const fs::path& run,
                                        std::size_t records, const CollectRequest& request, bool is_batch) {
  std::vector<std::string> nodes = nodes_named(experiment);
  if (!is_batch || nodes.empty() || records >= experiment.cases.size()) return nodes;
  const std::set<std::string> open = nodes_still_open(status_of(run), experiment);
  std::erase_if(nodes, [&](const std::string& node) { return open.contains(node); });
  if (!open.empty() && !request.json)
    fmt::print("\nnodes still to come, and not judged by what is missing: {}\n", fmt::join(open, ", "));
  return nodes;
}

// Tables and summary as a run leaves them; 0 when every case is there and ok.
int show(run::LoadedExperiment loaded, const fs::path& run, results::CasesFile cases, const CollectRequest& request,
         bool is_batch) {
  std::optional<results::ViewFile> view_file;
  if (request.output) {
    const auto place = results::output_place(*request.output);
    if (const auto* view = std::get_if<results::ViewFile>(&place)) view_file = *view;
    if (view_file) results::check_writable(*view_file);
    if (!view_file && is_batch)
      throw UsageError(
          "--output with a batch names a .csv, .md or .json file: its records belong to the folder of its run");
  }
  const experiment::Experiment experiment = as_recorded(std::move(loaded.experiment), cases.records);
  const results::Views views = results::write_views(run, experiment, std::move(cases), view_file);
  const auto allow = run::run_wide_settings(experiment).allow;
  const bool is_good = views.named_file_error.empty() && run::are_ok_or_allowed(views.records, experiment, allow);
  const int code = is_good ? exit_ok : exit_failed;
  console::Reporter reporter(request.quiet  ? console::ReportMode::quiet
                             : request.json ? console::ReportMode::json
                                            : console::ReportMode::people);
  reporter.run_finished(experiment, views, run.string(), false, code);
  if (!request.quiet) {
    const auto nodes = nodes_expected(experiment, run, views.records.size(), request, is_batch);
    fmt::print("{}", request.node_ranking(views.records, nodes, request.json));
  }
  if (!request.quiet && !request.json && views.records.size() < experiment.cases.size())
    fmt::print("{} of {} cases have a record\n", views.records.size(), experiment.cases.size());
  return code;
}

int collect_parts(const std::vector<fs::path>& folders, const CollectRequest& request) {
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
  check_parts(folders);
  // As if beside the first part: relative paths of the experiment were found when the parts ran.
  run::ExperimentSource source;
  source.file = folders.front() / "experiment.toml";
  source.plugin_folders = request.plugin_path;
  run::LoadResult loaded = run::load_experiment(source);
  if (!loaded.loaded) return console::report_mistakes(loaded.mistakes);
  fs::path dir = fs::absolute(folders.front()).lexically_normal().parent_path().parent_path();
  if (request.output)
    if (const auto place = results::output_place(*request.output); std::holds_alternative<fs::path>(place))
      dir = std::get<fs::path>(place);
  fs::path run;
  {
    auto folder = results::RunFolder::create(dir, loaded.loaded->experiment.name, *experiment_text, "{}");
    folder.become_latest();
    for (const std::string& note : folder.notes()) fmt::print(stderr, "note: {}\n", note);
    run = folder.path();
  }
  Collected collected = merge_runs(run, folders);
  say(collected, request);
  return show(std::move(*loaded.loaded), run, std::move(collected.cases), request, false);
}

}  // namespace

int collect(const CollectRequest& request) {
  if (request.quiet && request.json) throw UsageError("--quiet and --json exclude each other");
  const std::vector<std::string>& given = request.runs;
  if (given.size() > 1) return collect_parts({given.begin(), given.end()}, request);
  const fs::path run = batch_run(given.front());
  const Submission submission = read_submission(run);
  run::LoadResult loaded =
      run::load_submitted(run / "experiment.toml", submission.experiment_file, submission.plugin_file);
  if (!loaded.loaded) return console::report_mistakes(loaded.mistakes);
  Collected collected = collect_batch(run, submission);
  say(collected, request);
  // Cases that a filter left out were never submitted.
  std::erase_if(loaded.loaded->experiment.cases,
                [&](const experiment::Case& c) { return !collected.submitted.contains(c.index); });
  return show(std::move(*loaded.loaded), run, std::move(collected.cases), request, true);
}

}  // namespace assay::host::batch
