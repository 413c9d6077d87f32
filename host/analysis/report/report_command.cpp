#include "report/report_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/suggest.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "history/history_options.hpp"
#include "history/index.hpp"
#include "report/history_data.hpp"
#include "report/page.hpp"
#include "report/page_data.hpp"
#include "report/picture.hpp"
#include "report/report_file.hpp"
#include "report/runs.hpp"
#include "results/find_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::report {
namespace {

namespace fs = std::filesystem;

enum class ReportForm { html, svg, png };

ReportForm form_named(const std::string& word) {
  if (word == "html") return ReportForm::html;
  if (word == "svg") return ReportForm::svg;
  if (word == "png") return ReportForm::png;
  throw UsageError(fmt::format("--format is '{}'; expected html, svg or png", word));
}

// By --format, or as the file's name ends, or a plot's is SVG; a name that says another form than the options, or one
// that nothing here writes, is refused.
ReportForm form_of(const ReportRequest& request) {
  std::string suffix = request.output ? fs::path(*request.output).extension().string() : "";
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  std::optional<ReportForm> named;
  if (suffix == ".svg" || suffix == ".png" || suffix == ".html") named = form_named(suffix.substr(1));
  if (suffix == ".htm") named = ReportForm::html;
  if (!named && !suffix.empty())
    throw UsageError(fmt::format(
        "-o ends in {}, and a report writes none: expected a file that ends in .html, .svg or .png", suffix));
  if (request.format) {
    const ReportForm form = form_named(*request.format);
    if (named && *named != form)
      throw UsageError(
          fmt::format("-o ends in {}, and --format is {}; expected the same of both", suffix, *request.format));
    return form;
  }
  if (named == ReportForm::html && request.plot)
    throw UsageError("-o ends in .html, and --plot asks for one plot; expected .svg or .png");
  if (named) return *named;
  return request.plot ? ReportForm::svg : ReportForm::html;
}

// The plot that was asked for; "" of a whole report.
std::string plot_of(const ReportRequest& request, ReportForm form) {
  const auto names = plot_names();
  const std::vector<std::string> known(names.begin(), names.end());
  if (form == ReportForm::html) {
    if (request.plot) throw UsageError("--plot goes with --format svg or png; the page has all plots");
    return "";
  }
  if (!request.plot)
    throw UsageError(fmt::format("--format {} writes one plot: expected --plot with one of {}",
                                 form == ReportForm::svg ? "svg" : "png", fmt::join(known, ", ")));
  const auto& plot = *request.plot;
  if (std::find(known.begin(), known.end(), plot) == known.end())
    throw UsageError(
        fmt::format("--plot is '{}'; expected {}{}", plot, fmt::join(known, ", "), did_you_mean(plot, known)));
  return plot;
}

fs::path output_of(const ReportRequest& request, const std::vector<std::string>& runs, ReportForm form,
                   const std::string& plot) {
  if (request.output) {
    if (request.output->empty()) throw UsageError("-o is \"\"; expected the name of a file");
    return *request.output;
  }
  const std::string name =
      form == ReportForm::html ? "report.html" : plot + (form == ReportForm::svg ? ".svg" : ".png");
  const fs::path run = runs.front();
  const bool is_one_run = runs.size() == 1 && results::is_folder(run) && results::is_there(run / "cases.jsonl");
  return is_one_run ? run / name : fs::path(name);
}

// Hands the file to whatever shows HTML here, and does not wait for that. An answer that comes at once is looked at.
void open_page(const fs::path& file) {
  std::string program = "xdg-open", name = fs::absolute(file).string();
  char* const arguments[] = {program.data(), name.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
  pid_t opener = 0;
  const int error_number = posix_spawnp(&opener, program.c_str(), &quiet, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  bool has_ended = false;
  for (int i = 0; error_number == 0 && !has_ended && i < 100; ++i) {
    has_ended = waitpid(opener, &status, WNOHANG) == opener;
    if (!has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (error_number != 0 || (has_ended && status != 0))
    fmt::print(stderr,
               "assay: --open: xdg-open {}; open {} in a browser, or install the package xdg-utils and a browser\n",
               error_number != 0 ? "cannot be started" : "has shown no browser", name);
}

PageOptions page_options(const ReportRequest& request, const std::string& plot) {
  PageOptions options;
  options.plot = plot;
  options.made = utc_text(std::chrono::system_clock::now());
  const int width_px = request.width;
  if (width_px < 300 || width_px > 4000)
    throw UsageError(fmt::format("--width is {}; expected pixels from 300 to 4000", width_px));
  if (!plot.empty()) options.width_px = static_cast<std::size_t>(width_px);
  options.dark = request.dark;
  if (options.dark && plot.empty()) throw UsageError("--dark needs --plot; a page follows the setting of its reader");
  return options;
}

ComparisonRules comparison_rules(const ReportRequest& request) {
  ComparisonRules rules;
  const std::vector<std::string> across = request.across;
  rules.match = {{across.begin(), across.end()}, request.any};
  rules.split.keys = request.by;
  if (request.baseline) rules.split.baseline = *request.baseline;
  if (rules.split.baseline && rules.split.keys.empty())
    throw UsageError("--baseline is a value of --by and needs it; without --by the first run is the baseline");
  return rules;
}

// The runs before and after the given ones, of the same cases.
ReportedHistory read_history(const ReportRequest& request, ReportedRuns& reported) {
  ReportedHistory history;
  if (request.metric) history.options.metric = *request.metric;
  history.options.since = history::since_when(request.since);
  history.options.of_runs = places_of(reported);
  const std::vector<fs::path> folders = history::folders_of_results(request.results);
  history::Index index(history::Index::usual_file(), reported.warnings);
  index.refresh(folders, reported.warnings);
  const std::set<fs::path> given(history.options.of_runs.begin(), history.options.of_runs.end());
  const std::vector<history::IndexedRun> runs = index.runs();
  if (std::none_of(runs.begin(), runs.end(), [&](const history::IndexedRun& run) { return given.contains(run.run); }))
    throw UsageError(
        fmt::format("--history: no run that is given lies below {}; give the folder of results by "
                    "--results",
                    folders.front().string()));
  history.found = history::find_series(index, history.options, reported.warnings);
  const std::vector<std::string>& metrics = history.found.metrics;
  if (history.found.series.empty() && !metrics.empty())
    throw UsageError(
        fmt::format("no record has '{}'{}", history.options.metric, known_instead(history.options.metric, metrics)));
  return history;
}

}  // namespace

int make_report(const ReportRequest& request) {
  const std::vector<std::string> runs = request.runs;
  if (runs.empty()) throw UsageError("no run is given; expected a run folder, or several");
  const ReportForm form = form_of(request);
  const std::string plot = plot_of(request, form);
  if (request.open && form != ReportForm::html) throw UsageError("--open goes with --format html alone");
  const PageOptions options = page_options(request, plot);
  const fs::path file = output_of(request, runs, form, plot);

  const bool has_history = request.history || plot == "history";
  for (const auto& [option, is_given] :
       {std::pair{"metric", request.metric.has_value()}, std::pair{"since", request.since.has_value()},
        std::pair{"results", !request.results.empty()}})
    if (is_given && !has_history) throw UsageError(fmt::format("--{} goes with --history", option));
  ReportedRuns reported = read_runs(runs, comparison_rules(request));
  if (has_history) reported.history = read_history(request, reported);
  for (const std::string& warning : reported.warnings) results::say_on_stderr(warning);
  check_output(file, request.force);
  const std::string text = form == ReportForm::html
                               ? fitting_page(reported, options)
                               : picture_of(page_data(reported, options),
                                            form == ReportForm::svg ? PictureFormat::svg : PictureFormat::png, file);
  write_file_atomically(file, text);
  fmt::print("written: {}\n", file.string());
  if (request.open) open_page(file);
  return exit_ok;
}

}  // namespace assay::host::report
