#include "cli/reporter.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "profile/kernel_table.hpp"
#include "record/json.hpp"
#include "results/case_text.hpp"
#include "results/notes.hpp"
#include "results/table_page.hpp"
#include "run/plan.hpp"

namespace assay::host::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Reporter::Reporter(ReportMode mode)
    : mode_(mode), progress_(results::Progress::for_stream(stderr, mode != ReportMode::people)) {}

// Replacing invalid UTF-8: a plugin's text must not end the run.
void Reporter::emit(const Json& event) {
  if (mode_ != ReportMode::json) return;
  fmt::print("{}\n", record::json_text(event));
  std::fflush(stdout);
}

void Reporter::run_started(const experiment::Experiment& experiment, const std::string& run_folder, bool resumed,
                           std::size_t skipped) {
  emit({{"event", "run_started"},
        {"name", experiment.name},
        {"cases", experiment.cases.size()},
        {"skipped", skipped},
        {"resumed", resumed},
        {"folder", run_folder}});
  if (mode_ == ReportMode::people && resumed)
    message(fmt::format("resuming {}: {} of {} cases are finished", run_folder, skipped, experiment.cases.size()));
}

void Reporter::case_started(const experiment::Case& c, std::size_t position, std::size_t count) {
  Json axes = Json::object();
  for (const auto& [key, value] : c.axes) axes.emplace(key, to_json(value));
  Json event{{"event", "case_started"}, {"index", c.index}, {"axes", axes}};
  if (c.repeat) event.emplace("repeat", *c.repeat);
  emit(event);
  progress_.case_started(static_cast<std::int64_t>(position), static_cast<std::int64_t>(count),
                         results::case_label(c.axes, c.repeat));
  stage_.clear();
}

void Reporter::progress(const char* stage, std::int64_t step, std::int64_t total_steps, const std::string& phase) {
  if (stage_ != stage) {
    stage_ = stage;
    stage_begin_ = std::chrono::steady_clock::now();
    emit({{"event", "stage"}, {"stage", stage_}});
  }
  progress_.update(stage_, step, total_steps, phase, std::chrono::steady_clock::now() - stage_begin_);
}

void Reporter::case_finished(const record::CaseRecord& record) {
  if (mode_ == ReportMode::json) emit({{"event", "case_finished"}, {"record", record::to_json(record)}});
  progress_.case_finished(record.result.status_text(), results::case_summary(record));
  if (mode_ == ReportMode::people && record.result.kernels)
    for (const std::string& line : profile::kernel_lines(*record.result.kernels)) progress_.message(line);
}

void Reporter::message(const std::string& text) {
  if (mode_ == ReportMode::json) return emit({{"event", "message"}, {"text", text}});
  progress_.message(text);
}

void Reporter::run_finished(const experiment::Experiment& experiment, const results::Views& views,
                            const std::string& run_folder, bool interrupted, int exit_code) {
  progress_.finish();
  Json files = Json::array();
  for (const auto& file : views.files) files.push_back(file.string());
  emit({{"event", "run_finished"},
        {"folder", run_folder},
        {"files", files},
        {"finished", views.records.size()},
        {"interrupted", interrupted},
        {"exit_code", exit_code}});
  if (mode_ != ReportMode::people) return;
  for (const std::string& warning : views.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (!views.records.empty())
    fmt::print("{}", results::table_on_terminal(views.table, results::terminal_width(STDOUT_FILENO)));
  for (const std::string& line : results::problem_lines(views.records, run::run_wide_settings(experiment).allow))
    fmt::print("{}\n", line);
  for (const std::string& line : results::note_lines(views.records)) fmt::print("{}\n", line);
  if (interrupted)
    fmt::print("interrupted: {} of {} are finished; {}\n", views.records.size(),
               experiment.cases.size() == 1 ? "1 case" : fmt::format("{} cases", experiment.cases.size()),
               views.records.empty() ? "there is nothing to go on with: start it again" : "--resume runs the rest");
  fmt::print("results: {}\n", run_folder);
  // Made when it is wanted: a run of a second would be followed by a file of half a megabyte that nobody reads.
  if (!views.records.empty()) fmt::print("a page of it: assay report {}\n", run_folder);
  if (!views.named_file.empty()) fmt::print("written: {}\n", views.named_file.string());
  if (!views.named_file_error.empty()) fmt::print(stderr, "assay: --output: {}\n", views.named_file_error);
}

}  // namespace assay::host::cli
