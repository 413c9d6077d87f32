// assay report
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

#include "cli/history_options.hpp"
#include "cli/options.hpp"
#include "common/files.hpp"
#include "common/suggest.hpp"
#include "common/utc.hpp"
#include "history/index.hpp"
#include "report/history_data.hpp"
#include "report/page.hpp"
#include "report/page_data.hpp"
#include "report/picture.hpp"
#include "report/report_file.hpp"
#include "report/runs.hpp"
#include "results/find_runs.hpp"
#include "results/terminal.hpp"

namespace assay::host::cli {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr const char* about_report =
    "Makes one HTML file of a run, or of several: what was run and how far it can be trusted, every case, plots\n"
    "of steps, phases, memory, scaling, roofline, telemetry and ranks, the logs of what failed, and with two runs\n"
    "or more their comparison, the first one being the baseline; with --history their cases over time. The file asks "
    "no server for anything. RUN is as\n"
    "for 'assay compare': a run folder, a cases.jsonl, a summary bench_*.json, a folder with several of these\n"
    "below it, or runs of one side joined by commas.\n\n"
    "Of a single run folder the report is RUN/report.html, else report.html in the current folder. --format svg\n"
    "and png write a single plot, drawn by Chromium, which has to be installed.";

enum class ReportForm { html, svg, png };

ReportForm form_named(const std::string& word) {
  if (word == "html") return ReportForm::html;
  if (word == "svg") return ReportForm::svg;
  if (word == "png") return ReportForm::png;
  throw UsageError(fmt::format("--format is '{}'; expected html, svg or png", word));
}

// By --format, or as the file's name ends, or a plot's is SVG; a name that says another form than the options, or one
// that nothing here writes, is refused.
ReportForm form_of(const po::variables_map& values) {
  std::string suffix = values.count("output") ? fs::path(values["output"].as<std::string>()).extension().string() : "";
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  std::optional<ReportForm> named;
  if (suffix == ".svg" || suffix == ".png" || suffix == ".html") named = form_named(suffix.substr(1));
  if (suffix == ".htm") named = ReportForm::html;
  if (!named && !suffix.empty())
    throw UsageError(fmt::format(
        "-o ends in {}, and a report writes none: expected a file that ends in .html, .svg or .png", suffix));
  if (values.count("format")) {
    const ReportForm form = form_named(values["format"].as<std::string>());
    if (named && *named != form)
      throw UsageError(fmt::format("-o ends in {}, and --format is {}; expected the same of both", suffix,
                                   values["format"].as<std::string>()));
    return form;
  }
  if (named == ReportForm::html && values.count("plot"))
    throw UsageError("-o ends in .html, and --plot asks for one plot; expected .svg or .png");
  if (named) return *named;
  return values.count("plot") ? ReportForm::svg : ReportForm::html;
}

// The plot that was asked for; "" of a whole report.
std::string plot_of(const po::variables_map& values, ReportForm form) {
  const auto names = report::plot_names();
  const std::vector<std::string> known(names.begin(), names.end());
  if (form == ReportForm::html) {
    if (values.count("plot")) throw UsageError("--plot goes with --format svg or png; the page has all plots");
    return "";
  }
  if (!values.count("plot"))
    throw UsageError(fmt::format("--format {} writes one plot: expected --plot with one of {}",
                                 form == ReportForm::svg ? "svg" : "png", fmt::join(known, ", ")));
  const auto& plot = values["plot"].as<std::string>();
  if (std::find(known.begin(), known.end(), plot) == known.end())
    throw UsageError(
        fmt::format("--plot is '{}'; expected {}{}", plot, fmt::join(known, ", "), did_you_mean(plot, known)));
  return plot;
}

fs::path output_of(const po::variables_map& values, const Arguments& runs, ReportForm form, const std::string& plot) {
  if (values.count("output")) {
    if (values["output"].as<std::string>().empty()) throw UsageError("-o is \"\"; expected the name of a file");
    return values["output"].as<std::string>();
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

report::PageOptions page_options(const po::variables_map& values, const std::string& plot) {
  report::PageOptions options;
  options.plot = plot;
  options.made = utc_text(std::chrono::system_clock::now());
  const int width_px = values["width"].as<int>();
  if (width_px < 300 || width_px > 4000)
    throw UsageError(fmt::format("--width is {}; expected pixels from 300 to 4000", width_px));
  if (!plot.empty()) options.width_px = static_cast<std::size_t>(width_px);
  options.dark = values.count("dark") > 0;
  if (options.dark && plot.empty())
    throw UsageError("--dark goes with --plot; a page is as dark as who reads it likes");
  return options;
}

report::ComparisonRules comparison_rules(const po::variables_map& values) {
  report::ComparisonRules rules;
  const Arguments across = list_of(values, "across");
  rules.match = {{across.begin(), across.end()}, values.count("any") > 0};
  rules.split.keys = list_of(values, "by");
  if (values.count("baseline")) rules.split.baseline = values["baseline"].as<std::string>();
  if (rules.split.baseline && rules.split.keys.empty())
    throw UsageError("--baseline names a value of --by, and there is none; without --by the first run is the baseline");
  return rules;
}

// The runs before and after the given ones, of the same cases.
report::ReportedHistory read_history(const po::variables_map& values, report::ReportedRuns& reported) {
  report::ReportedHistory history;
  if (values.count("metric")) history.options.metric = values["metric"].as<std::string>();
  history.options.since = since_when(values);
  history.options.of_runs = report::places_of(reported);
  const std::vector<fs::path> folders = folders_of_results(values);
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

int make_report(const po::variables_map& values) {
  const Arguments runs = list_of(values, "run");
  if (runs.empty()) throw UsageError("no run is given; expected a run folder, or several");
  const ReportForm form = form_of(values);
  const std::string plot = plot_of(values, form);
  if (values.count("open") && form != ReportForm::html) throw UsageError("--open goes with --format html alone");
  const report::PageOptions options = page_options(values, plot);
  const fs::path file = output_of(values, runs, form, plot);

  const bool has_history = values.count("history") > 0 || plot == "history";
  for (const char* option : {"metric", "since", "results"})
    if (values.count(option) && !has_history) throw UsageError(fmt::format("--{} goes with --history", option));
  report::ReportedRuns reported = report::read_runs(runs, comparison_rules(values));
  if (has_history) reported.history = read_history(values, reported);
  for (const std::string& warning : reported.warnings) results::say_on_stderr(warning);
  report::check_output(file, values.count("force") > 0);
  const std::string text =
      form == ReportForm::html
          ? report::fitting_page(reported, options)
          : report::picture_of(report::page_data(reported, options),
                               form == ReportForm::svg ? report::PictureFormat::svg : report::PictureFormat::png, file);
  write_file_atomically(file, text);
  fmt::print("written: {}\n", file.string());
  if (values.count("open")) open_page(file);
  return run::exit_ok;
}

}  // namespace

int report_command(const Arguments& arguments) {
  po::options_description visible("Options");
  visible.add_options()                                                                                        //
      ("output,o", po::value<std::string>(), "the file to write; its folder is made where it is missing")      //
      ("open", "show the page with what opens HTML here")                                                      //
      ("format", po::value<std::string>(), "html (the default), or svg, png: one plot; as -o ends otherwise")  //
      ("plot", po::value<std::string>(),
       "which one: comparison, history, steps, distribution, phases, memory, scaling, roofline, telemetry, ranks")  //
      ("width", po::value<int>()->default_value(960), "of a single plot, in pixels")                                //
      ("dark", "a single plot on dark paper")                                                                       //
      ("by", po::value<Arguments>()->composing(),
       "an input that varies within the run: its values are compared; repeatable")      //
      ("baseline", po::value<std::string>(), "the value of --by that is the baseline")  //
      ("across", po::value<Arguments>()->composing(),
       "an input in which compared cases may differ, such as execution; repeatable")                                  //
      ("any", "also compares cases of other numbers of ranks")                                                        //
      ("history", "also the runs before and after of the same cases, and since when they are slower or faster")       //
      ("metric", po::value<std::string>(), "with --history: what to follow (default: step), as for `assay history`")  //
      ("since", po::value<std::string>(), "with --history: runs from a day on (2026-11-03), or of an age (30d, 4w)")  //
      ("results", po::value<Arguments>()->composing(),
       "with --history: a folder of results (default: results); repeatable")  //
      ("force", "replace the file, whatever it is");
  const ParsedOptions options =
      parse_options(arguments, "assay report RUN [RUN ...] [options]", about_report, visible, "run", -1);
  if (options.help) return run::exit_ok;
  try {
    return make_report(options.values);
  } catch (const results::NoRunError& e) {
    throw UsageError(e.what());
  } catch (const compare::SplitError& e) {
    throw UsageError(e.what());
  } catch (const report::OutputError& e) {
    throw UsageError(e.what());
  }
}

}  // namespace assay::host::cli
