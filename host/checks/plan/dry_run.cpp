#include "plan/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/exit_code.hpp"
#include "common/text_format.hpp"
#include "console/mistakes.hpp"
#include "console/reporter.hpp"
#include "plan/experiment_plan.hpp"
#include "plan/report.hpp"
#include "record/json.hpp"
#include "results/case_text.hpp"
#include "run/preview.hpp"

namespace assay::host::plan {
namespace {

using OrderedJson = nlohmann::ordered_json;
using State = run::PreviewedCase::State;

std::string label_of(const experiment::Case& c) {
  const std::string label = results::case_label(c.axes, c.repeat);
  return label.empty() ? "(no sweep)" : label;
}

std::string count_of_cases(std::size_t count) { return fmt::format("{} case{}", count, count == 1 ? "" : "s"); }

// The table of the plan has a row for each case that the list would have; of repeats it names none.
void print_cases(const experiment::Experiment& experiment, bool is_planned) {
  fmt::print("{}: {}\n", experiment.name, count_of_cases(experiment.cases.size()));
  if (is_planned && !experiment.cases.front().repeat) return;
  for (const experiment::Case& c : experiment.cases) fmt::print("  {:>3}  {}\n", c.index + 1, label_of(c));
}

std::vector<std::string> notes_on(const experiment::OutputSettings& output) {
  std::vector<std::string> notes;
  for (const std::string& column : output.reported_columns)
    notes.push_back(
        fmt::format("column '{}' of [output] columns is unknown to assay: it stays empty unless the program reports a "
                    "phase or a metric of that name (a metric of steps is {}.mean)",
                    one_line(column), one_line(column)));
  return notes;
}

// Says what --resume would do with each case.
void print_resumption(const experiment::Experiment& experiment, const run::Preview& preview) {
  const auto done = std::count_if(preview.cases.begin(), preview.cases.end(),
                                  [](const run::PreviewedCase& c) { return c.state == State::done; });
  fmt::print("{}: {}, {} done; {}\n", experiment.name, count_of_cases(experiment.cases.size()), done,
             preview.run_folder.empty() ? "a new run" : "resumes " + one_line(preview.run_folder));
  if (!preview.passed_over.empty()) fmt::print("note: {}\n", one_line(preview.passed_over));
  for (std::size_t i = 0; i < experiment.cases.size(); ++i) {
    const experiment::Case& c = experiment.cases[i];
    const run::PreviewedCase& found = preview.cases[i];
    fmt::print("  {:>3}  {:<7}  {}{}\n", c.index + 1, found.state == State::done ? "done" : "pending", label_of(c),
               found.why.empty() ? "" : fmt::format(" (runs again: {})", found.why));
  }
}

// The plan, or why there is none, which is printed and is no mistake of the experiment.
struct DryRun {
  std::optional<ExperimentPlan> planned;
  std::string why_not_planned;
};

DryRun dry_run_of(const run::LoadedExperiment& loaded, const std::optional<run::Preview>& preview) {
  PlanOptions options;
  options.wants_time = true;
  if (preview)
    for (std::size_t i = 0; i < preview->cases.size(); ++i)
      if (preview->cases[i].state == State::done) options.done.insert(i);
  DryRun dry;
  try {
    dry.planned = plan_of(loaded, options);
  } catch (const std::exception& e) {
    dry.why_not_planned = e.what();
  }
  return dry;
}

void print_time(const ExperimentPlan& planned) {
  const run::Estimate& estimate = *planned.estimate;
  const std::string text = console::estimate_text(estimate);
  if (!text.empty())
    fmt::print("{}\n", text);
  else if (!estimate.seconds.empty())
    fmt::print("expected: time not known, since no earlier run has these cases on this device\n");
}

OrderedJson json_of(const run::LoadedExperiment& loaded, const std::optional<run::Preview>& preview,
                    const DryRun& dry) {
  const experiment::Experiment& experiment = loaded.experiment;
  OrderedJson states = OrderedJson::array();
  for (std::size_t i = 0; i < experiment.cases.size(); ++i) {
    const State state = preview ? preview->cases[i].state : State::pending;
    OrderedJson one{{"index", experiment.cases[i].index}, {"state", state == State::done ? "done" : "pending"}};
    if (experiment.cases[i].repeat) one["repeat"] = *experiment.cases[i].repeat;
    if (state == State::again) one["why"] = preview->cases[i].why;
    states.push_back(std::move(one));
  }
  OrderedJson json{{"event", "dry_run"}, {"name", experiment.name}, {"states", std::move(states)}};
  if (preview && !preview->run_folder.empty()) json["folder"] = preview->run_folder;
  if (const auto notes = notes_on(experiment.output); !notes.empty()) json["notes"] = notes;
  if (!dry.planned) {
    json["not_planned"] = dry.why_not_planned;
    return json;
  }
  if (dry.planned->estimate) json["estimate"] = console::estimate_json(*dry.planned->estimate);
  json["plan"] = to_json(dry.planned->plan, experiment.name, "");
  return json;
}

}  // namespace

int show_dry_run(const run::LoadedExperiment& loaded, const run::RunOptions& options, bool as_json) {
  std::optional<run::Preview> preview;
  if (options.resume) preview = run::preview_resumption(loaded.experiment, loaded.target, options);
  const DryRun dry = dry_run_of(loaded, preview);
  if (as_json) {
    fmt::print("{}\n", record::json_text(json_of(loaded, preview, dry)));
  } else {
    if (preview)
      print_resumption(loaded.experiment, *preview);
    else
      print_cases(loaded.experiment, dry.planned.has_value());
    for (const std::string& note : notes_on(loaded.experiment.output)) fmt::print("note: {}\n", note);
    fmt::print("\n");
    if (dry.planned) {
      print_plan(*dry.planned);
      print_time(*dry.planned);
    } else {
      fmt::print("not planned: {}\n", dry.why_not_planned);
    }
  }
  if (!dry.planned) return exit_ok;
  if (!dry.planned->mistakes.empty()) return console::report_mistakes(dry.planned->mistakes);
  return is_fine(dry.planned->plan, loaded.experiment) ? exit_ok : exit_failed;
}

int show_batch_dry_run(const run::LoadedExperiment& loaded, std::int64_t gpus_per_node,
                       const std::optional<std::string>& device) {
  if (!device) {
    fmt::print("\n{}: `assay plan` with --device says what its cases will take\n", loaded.experiment.name);
    return report_what_plugin_refuses(loaded, gpus_per_node);
  }
  PlanOptions options;
  if (gpus_per_node > 0) options.devices = static_cast<std::int32_t>(gpus_per_node);
  options.device = device_asked_for(*device);
  fmt::print("\n{}\n", loaded.experiment.name);
  return show_plan_of_dry_run(loaded, options);
}

}  // namespace assay::host::plan
