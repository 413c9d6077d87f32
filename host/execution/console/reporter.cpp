#include "console/reporter.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>

#include "common/exit_code.hpp"
#include "common/text_format.hpp"
#include "common/utc.hpp"
#include "profile/counted_kernels.hpp"
#include "profile/kernel_table.hpp"
#include "record/json.hpp"
#include "results/case_text.hpp"
#include "results/notes.hpp"
#include "results/table_page.hpp"
#include "results/time_spent.hpp"
#include "run/plan.hpp"

namespace assay::host::console {
namespace {

using Json = nlohmann::ordered_json;

// How often a program hears of the steps of one stage.
constexpr std::chrono::seconds between_progress_events{1};

// What a user types to call this program again: "assay" where the shell finds it, otherwise its path.
std::string own_command() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return "assay";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::equivalent(fs::path(folder) / "assay", self, error) && !error) return "assay";
  const std::string near = fs::proximate(self, error).string();
  return error || near.starts_with("..") ? self.string() : near.find('/') == near.npos ? "./" + near : near;
}

// A shorter run is over before anybody has read how long it will take.
constexpr double seconds_of_a_long_run = 10;

// Of those that Nsight Compute has counted: the rest is in their file.
constexpr std::size_t most_counted_kernels = 12;

}  // namespace

std::string estimate_text(const run::Estimate& estimate) {
  const std::size_t all = estimate.seconds.size(), known = estimate.known();
  if (known == 0 || estimate.runs.empty()) return "";
  const std::string which = known < all ? fmt::format("{} of {} cases", known, all)
                            : all == 1  ? "the case"
                                        : fmt::format("all {} cases", all);
  const auto time =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(estimate.total_s()));
  const std::string others = estimate.runs.size() > 1 ? fmt::format(" and {} other{}", estimate.runs.size() - 1,
                                                                    estimate.runs.size() > 2 ? "s" : "")
                                                      : "";
  return fmt::format("expected: about {} for {}, as in {}{}{}", results::clock_text(time), which,
                     one_line(estimate.runs.front().string()), others,
                     known == all       ? ""
                     : all - known == 1 ? "; no earlier run has the other one"
                                        : "; no earlier run has the others");
}

Json estimate_json(const run::Estimate& estimate) {
  Json runs = Json::array();
  for (const auto& run : estimate.runs) runs.push_back(run.string());
  return {{"seconds", estimate.total_s()},
          {"known", estimate.known()},
          {"cases", estimate.seconds.size()},
          {"runs", std::move(runs)}};
}

Reporter::Reporter(ReportMode mode)
    : mode_(mode), progress_(results::Progress::for_stream(stderr, mode != ReportMode::people)) {}

// Replacing invalid UTF-8: a plugin's text must not end the run.
void Reporter::emit(const char* name, const Json& fields) {
  if (mode_ != ReportMode::json) return;
  Json event{{"event", name}, {"time", utc_text_ms(std::chrono::system_clock::now())}};
  if (index_) event.emplace("index", *index_);
  if (repeat_) event.emplace("repeat", *repeat_);
  event.update(fields);
  fmt::print("{}\n", record::json_text(event));
  std::fflush(stdout);
}

void Reporter::run_started(const experiment::Experiment& experiment, const std::string& run_folder, bool resumed,
                           std::size_t skipped) {
  emit("run_started", {{"name", experiment.name},
                       {"cases", experiment.cases.size()},
                       {"skipped", skipped},
                       {"resumed", resumed},
                       {"folder", run_folder}});
  if (mode_ == ReportMode::people && resumed)
    message(fmt::format("resuming {}: {} of {} cases are finished{}", run_folder, skipped, experiment.cases.size(),
                        skipped == experiment.cases.size()
                            ? ", so that nothing is left to run; without --resume a new run begins"
                            : ""));
}

void Reporter::estimated(const run::Estimate& estimate) {
  emit("estimate", estimate_json(estimate));
  progress_.expect(estimate.seconds);
  if (mode_ == ReportMode::people && estimate.total_s() >= seconds_of_a_long_run) message(estimate_text(estimate));
}

void Reporter::case_started(const experiment::Case& c, std::size_t position, std::size_t count) {
  Json axes = Json::object();
  for (const auto& [key, value] : c.axes) axes.emplace(key, to_json(value));
  index_ = c.index;
  repeat_ = c.repeat;
  emit("case_started", {{"axes", axes}});
  progress_.case_started(static_cast<std::int64_t>(position), static_cast<std::int64_t>(count),
                         results::case_label(c.axes, c.repeat), c.index + 1);
  stage_.clear();
}

void Reporter::progress(const char* stage, std::int64_t step, std::int64_t total_steps, const std::string& phase,
                        const std::string& part) {
  const auto now = std::chrono::steady_clock::now();
  if (stage_ != stage) {
    stage_ = stage;
    stage_begin_ = last_event_ = now;
    emit("stage", {{"stage", stage_}});
  } else if (now - last_event_ >= between_progress_events) {
    last_event_ = now;
    Json fields{{"stage", stage_}, {"step", step}};
    if (total_steps > 0) fields.emplace("steps", total_steps);
    if (!phase.empty()) fields.emplace("phase", phase);
    if (!part.empty()) fields.emplace("part", part);
    emit("progress", fields);
  }
  progress_.update(stage_, step, total_steps, phase, now - stage_begin_, part);
}

void Reporter::case_finished(const record::CaseRecord& record) {
  if (mode_ == ReportMode::json) emit("case_finished", {{"record", record::to_json(record)}});
  index_.reset();
  repeat_.reset();
  progress_.case_finished(record.result.status_text(), results::case_summary(record));
  if (mode_ == ReportMode::people && record.result.kernels)
    for (const std::string& line : profile::kernel_lines(*record.result.kernels)) progress_.message(line);
  if (mode_ == ReportMode::people && record.result.ncu)
    for (const std::string& line : profile::counted_lines(record.result, most_counted_kernels)) progress_.message(line);
}

void Reporter::message(const std::string& text) {
  if (mode_ == ReportMode::json) return emit("message", {{"text", text}});
  progress_.message(text);
}

void Reporter::run_finished(const experiment::Experiment& experiment, const results::Views& views,
                            const std::string& run_folder, bool interrupted, int exit_code) {
  progress_.finish();
  Json files = Json::array();
  for (const auto& file : views.files) files.push_back(file.string());
  emit("run_finished", {{"folder", run_folder},
                        {"files", files},
                        {"finished", views.records.size()},
                        {"interrupted", interrupted},
                        {"exit_code", exit_code}});
  const auto problems = results::problem_lines(views.records, run::run_wide_settings(experiment).allow);
  if (mode_ != ReportMode::people) return tell_errors(views, problems, run_folder, exit_code);
  for (const std::string& warning : views.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (!views.records.empty())
    fmt::print("{}", results::table_on_terminal(
                         views.table, results::table_width(STDOUT_FILENO), Palette::of(STDOUT_FILENO),
                         experiment.output.columns.empty() ? own_command() + " table " + run_folder : ""));
  const auto tell = [](const std::string& line) { fmt::print("{}", results::line_on_terminal(line, STDOUT_FILENO)); };
  for (const std::string& line : problems) tell(line);
  for (const std::string& line : results::validity_lines(views.records)) tell(line);
  for (const std::string& line : results::note_lines(views.records)) tell(line);
  if (interrupted)
    fmt::print("interrupted: {} of {} are finished; {}\n", views.records.size(),
               experiment.cases.size() == 1 ? "1 case" : fmt::format("{} cases", experiment.cases.size()),
               views.records.empty() ? "there is nothing to continue: start it again" : "--resume runs the rest");
  if (const std::string spent = results::time_spent(views.records); !spent.empty()) tell("time: " + spent);
  fmt::print("results: {}\n", run_folder);
  // Made when it is wanted: a run of a second would be followed by a file of half a megabyte that nobody reads.
  if (!views.records.empty()) fmt::print("HTML report: {} report {}\n", own_command(), run_folder);
  if (!views.named_file.empty()) fmt::print("written: {}\n", views.named_file.string());
  if (!views.named_file_error.empty()) fmt::print(stderr, "assay: --output: {}\n", views.named_file_error);
}

// To standard error, as the standard output is a program's or nobody's. A program has the problems in the records.
void Reporter::tell_errors(const results::Views& views, const std::vector<std::string>& problems,
                           const std::string& run_folder, int exit_code) const {
  for (const std::string& warning : views.warnings) fmt::print(stderr, "assay: {}\n", warning);
  if (!views.named_file_error.empty()) fmt::print(stderr, "assay: --output: {}\n", views.named_file_error);
  if (mode_ != ReportMode::quiet || exit_code == exit_ok) return;
  for (const std::string& line : problems) fmt::print(stderr, "assay: {}\n", line);
  if (!problems.empty()) fmt::print(stderr, "assay: logs and records: {}\n", run_folder);
}

}  // namespace assay::host::console
