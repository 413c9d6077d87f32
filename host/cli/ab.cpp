// assay ab EXPERIMENT.toml
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>

#include "ab/child.hpp"
#include "ab/looks.hpp"
#include "ab/report.hpp"
#include "ab/session.hpp"
#include "ab/side.hpp"
#include "ab/side_cases.hpp"
#include "ab/side_runs.hpp"
#include "cli/load_experiment.hpp"
#include "cli/options.hpp"
#include "cli/statistic_option.hpp"
#include "common/files.hpp"
#include "common/utc.hpp"
#include "compare/sides.hpp"
#include "experiment/units.hpp"
#include "results/case_text.hpp"
#include "results/store.hpp"
#include "wireup/rank_source.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* ab_about =
    "Runs two variants of an experiment, or two experiments, in turns, each time in processes of their own, until it\n"
    "is clear whether B is faster, slower or the same, or the budget is spent. Each side is one ordinary run, whose "
    "cases have repeats:\n"
    "'assay compare' reads both. The verdict is looked at several times; its confidence is that of all looks "
    "together.\n\n"
    "  assay ab x.toml --a work=10 --b work=10.3\n"
    "  assay ab ours.toml theirs.toml\n"
    "  assay ab x.toml --a-plugins old/plugins --b-plugins new/plugins --fail-if slower\n\n"
    "Exit codes: 0; 1 slower (--fail-if slower), or a run that failed; 2 wrong command line or experiment; 3 cannot\n"
    "tell (--fail-if cannot-tell); 130 interrupted. For `git bisect run`, --bisect has codes of its own: 0 not "
    "slower,\n"
    "1 slower, 125 cannot tell or B does not run (the commit is skipped), 255 A does not run, or a wrong command line\n"
    "(the bisection ends).";

constexpr int exit_cannot_tell = 3, exit_skip_commit = 125, exit_end_bisection = 255;

po::options_description ab_options() {
  po::options_description visible("Options");
  const auto text = [] { return po::value<std::string>(); };
  const auto texts = [] { return po::value<Arguments>()->composing(); };
  visible.add_options()                                                                                               //
      ("a", texts(), "key=value: a parameter or a setting of side A, the baseline; repeatable")                       //
      ("b", texts(), "the same of side B")                                                                            //
      ("a-plugins", texts(), "folder with plugins that A takes before all others; repeatable")                        //
      ("b-plugins", texts(), "the same of B")                                                                         //
      ("a-assay", text(), "the program that runs A: another build of assay, or one of another place")                 //
      ("b-assay", text(), "the same of B")                                                                            //
      ("a-env", texts(), "NAME=value: in the environment of A's processes; repeatable")                               //
      ("b-env", texts(), "the same of B")                                                                             //
      ("a-a", "no difference: tests the machine itself, A against A")                                                 //
      ("set", texts(), "key=value: of both sides, as for `assay run`; repeatable")                                    //
      ("filter", texts(), "key=value: only the cases that match; repeatable")                                         //
      ("plugin-path", texts(), "folder with plugins, of both sides; repeatable")                                      //
      ("metric", po::value<std::string>()->default_value("step"), "what is compared: one metric of `assay compare`")  //
      ("statistic", po::value<std::string>()->default_value(word_of(compare::TestOptions().statistic)),
       statistic_help)                                                                                          //
      ("threshold", po::value<double>()->default_value(2, "2"), "percent that are still the same")              //
      ("confidence", po::value<double>()->default_value(99, "99"), "percent, of all looks and cases together")  //
      ("run-to-run", po::value<double>()->default_value(0.1, "0.1"),
       "percent that runs of one thing differ by at least, however well those at hand agree")  //
      ("states", po::value<double>()->default_value(10, "10"),
       "percent by which two states of a machine may differ, in either of which a run may be; 0: it has one")(
          "min-runs", po::value<std::int64_t>()->default_value(6), "runs a side before the first look")    //
      ("max-runs", po::value<std::int64_t>()->default_value(30), "runs a side at most")                    //
      ("max-time", po::value<std::string>()->default_value("10m"), "no pair of runs begins later")         //
      ("fail-if", text(), "slower, cannot-tell, or both with a comma: exit codes 1 and 3")                 //
      ("bisect", "exit codes for `git bisect run`")                                                        //
      ("output", text(), "a new folder for the runs of both sides; else one below results/ab-EXPERIMENT")  //
      ("dry-run", "check both sides, and start no case")                                                   //
      ("quiet", "print the result only")("json", "print the result as one JSON object");
  return visible;
}

struct AbRequest {
  ab::CommonPart common;
  std::vector<ab::SideSpec> sides;
  ab::SessionPlan plan;
  ab::SessionNames names;
  bool fails_if_slower = false, fails_if_cannot_tell = false, bisects = false;
  bool is_quiet = false, is_json = false;
};

constexpr std::int64_t most_runs = 1000;

// "work=10" in its parts.
std::pair<std::string, std::string> assignment_in(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(fmt::format("--{} is '{}'; expected {}", option, text,
                                 option.ends_with("env") ? "NAME=value" : "key=value, as in work=10"));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void check_settings(const Arguments& settings, const std::string& option) {
  for (const std::string& setting : settings) {
    const std::string key = assignment_in(setting, option).first;
    if (key == "run.repeat" || key == "run.order")
      throw UsageError(
          fmt::format("--{} {}: how often a side runs is what `assay ab` decides; see --min-runs and "
                      "--max-runs",
                      option, setting));
  }
}

ab::SideSpec side_in(const po::variables_map& values, const std::string& name, const std::string& label) {
  ab::SideSpec side;
  side.label = label;
  side.executable = values.count(name + "-assay") ? values[name + "-assay"].as<std::string>() : ab::this_program;
  side.settings = list_of(values, name.c_str());
  check_settings(side.settings, name);
  side.plugin_folders = list_of(values, (name + "-plugins").c_str());
  for (const std::string& folder : side.plugin_folders)
    if (std::error_code ignored; !fs::is_directory(folder, ignored))
      throw UsageError(fmt::format("--{}-plugins is {}, which is no folder; expected one with plugins", name, folder));
  for (const std::string& variable : list_of(values, (name + "-env").c_str()))
    side.environment.push_back(assignment_in(variable, name + "-env"));
  return side;
}

double percentage(const po::variables_map& values, const char* name, double low, double high) {
  const double value = values[name].as<double>();
  if (!(value >= low && value <= high))
    throw UsageError(fmt::format("--{} is {}; expected a percentage from {} to {}", name, value, low, high));
  return value / 100;
}

ab::SessionPlan plan_in(const po::variables_map& values) {
  ab::SessionPlan plan;
  plan.looks.confidence = percentage(values, "confidence", 50, 99.9);
  plan.looks.min_runs = values["min-runs"].as<std::int64_t>();
  plan.looks.max_runs = values["max-runs"].as<std::int64_t>();
  const std::int64_t min_runs = plan.looks.min_runs, max_runs = plan.looks.max_runs;
  for (const auto& [name, runs] : {std::pair{"min-runs", min_runs}, std::pair{"max-runs", max_runs}})
    if (runs < ab::fewest_runs || runs > most_runs)
      throw UsageError(fmt::format("--{} is {}; expected {} to {} runs a side: fewer do not tell how much runs differ",
                                   name, runs, ab::fewest_runs, most_runs));
  if (min_runs > max_runs) {
    const bool is_given = !values["min-runs"].defaulted();
    throw UsageError(fmt::format("--max-runs is {}, and there is no look before {} runs a side ({}); {}", max_runs,
                                 min_runs, is_given ? "--min-runs" : "what --min-runs is without being given",
                                 is_given ? "expected --min-runs <= --max-runs"
                                          : fmt::format("add --min-runs {}, or leave out --max-runs", max_runs)));
  }
  const std::string max_time = values["max-time"].as<std::string>();
  const auto duration = experiment::parse_duration(max_time);
  if (!duration || duration->count() <= 0)
    throw UsageError(fmt::format("--max-time is '{}'; expected a duration, as 10m, 90s or 1h30m", max_time));
  plan.max_time_s = std::chrono::duration<double>(*duration).count();
  return plan;
}

void read_fail_if(const po::variables_map& values, AbRequest& request) {
  if (!values.count("fail-if")) return;
  if (request.bisects) throw UsageError("--bisect has exit codes of its own; leave out --fail-if");
  std::string rest = values["fail-if"].as<std::string>();
  while (!rest.empty()) {
    const std::string word = rest.substr(0, rest.find(','));
    rest = word.size() < rest.size() ? rest.substr(word.size() + 1) : "";
    if (word == "slower")
      request.fails_if_slower = true;
    else if (word == "cannot-tell")
      request.fails_if_cannot_tell = true;
    else
      throw UsageError(fmt::format("--fail-if is '{}'; expected slower, cannot-tell, or both with a comma", word));
  }
}

// The command line says whether the sides differ, so that nobody starts an hour of runs of one thing by mistake.
void check_difference(bool is_one_thing, bool is_asked_for) {
  if (is_one_thing && !is_asked_for)
    throw UsageError(
        "A and B do not differ; name what is to differ, as in --a work=10 --b work=10.3 (or --b-plugins, --b-env, a "
        "second "
        "experiment), or add --a-a for a test of the machine itself");
  if (is_asked_for && !is_one_thing)
    throw UsageError(
        "--a-a tests the machine with one and the same thing on both sides, and here A and B differ; leave out "
        "--a-a, or what they differ in");
}

AbRequest ab_request_in(const po::variables_map& values) {
  const Arguments files = list_of(values, "experiment");
  if (files.empty() || files.size() > 2)
    throw UsageError("ab needs one experiment file, or two: that of A, and that of B");
  if (values.count("quiet") && values.count("json")) throw UsageError("--quiet and --json exclude each other");
  AbRequest request;
  request.common = {list_of(values, "set"), list_of(values, "filter"), list_of(values, "plugin-path")};
  check_settings(request.common.settings, "set");
  request.sides = {side_in(values, "a", "A"), side_in(values, "b", "B")};
  request.sides[0].experiment = files.front(), request.sides[1].experiment = files.back();
  request.names.is_one_thing = request.sides[0].equals(request.sides[1]);
  request.bisects = values.count("bisect") > 0;
  read_fail_if(values, request);
  request.plan = plan_in(values);
  request.plan.stops_at_worse = request.bisects || request.fails_if_slower;
  request.names.metric = values["metric"].as<std::string>();
  request.names.statistic = values["statistic"].as<std::string>();
  request.names.test.statistic = statistic_of(request.names.statistic);
  request.names.test.threshold = percentage(values, "threshold", 0, 100);
  request.names.test.run_to_run = percentage(values, "run-to-run", 0, 100);
  request.names.test.states = percentage(values, "states", 0, 100);
  request.is_quiet = values.count("quiet") > 0, request.is_json = values.count("json") > 0;
  check_difference(request.names.is_one_thing, values.count("a-a") > 0);
  return request;
}

void check_output(const po::variables_map& values) {
  if (!values.count("output")) return;
  const fs::path folder = values["output"].as<std::string>();
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_empty(folder, ignored))
    throw UsageError(
        fmt::format("--output is {}, which is there and not empty; expected a new folder", folder.string()));
}

// A number is one however it is spelt (1, 1.0).
std::string input_text(const Value& value) {
  const auto* count = std::get_if<std::int64_t>(&value);
  return count ? fmt::format("{}", static_cast<double>(*count)) : to_text(value);
}

// The cases that `this_program` would run. Nothing of a side that another program runs, and reads as it does.
std::optional<std::vector<ab::PlannedCase>> planned_cases(const ab::SideSpec& side, const ab::CommonPart& common) {
  if (side.executable != ab::this_program) return std::nullopt;
  ExperimentSource source{side.experiment, std::nullopt, common.settings, common.filters, side.plugin_folders};
  source.set.insert(source.set.end(), side.settings.begin(), side.settings.end());
  source.set.emplace_back("run.repeat=1");
  source.plugin_folders.insert(source.plugin_folders.end(), common.plugin_folders.begin(), common.plugin_folders.end());
  const LoadResult result = load_experiment(source);
  if (!result.loaded) return std::nullopt;
  std::vector<ab::PlannedCase> cases;
  for (const experiment::Case& c : result.loaded->experiment.cases) {
    ab::PlannedCase planned{results::case_label(c.axes), {}, {}};
    for (const auto& [key, value] : c.params) planned.inputs[key] = input_text(value);
    for (const auto& [key, value] : c.axes) planned.inputs.emplace(key, input_text(value)), planned.axes.push_back(key);
    cases.push_back(std::move(planned));
  }
  return cases;
}

// Made anew: what another session has left would be taken for runs of this one.
fs::path folder_of_session(const po::variables_map& values, const fs::path& experiment) {
  if (!values.count("output")) {
    const fs::path parent = fs::path("results") / ("ab-" + experiment.stem().string());
    create_folders(parent, "create the results folder");
    std::random_device random;
    return results::make_unique_folder(parent, utc_stamp(std::chrono::system_clock::now()),
                                       [&random] { return random(); });
  }
  const fs::path folder = values["output"].as<std::string>();
  create_folders(folder, "create the folder for both sides");
  return folder;
}

class AbRun {
 public:
  explicit AbRun(AbRequest request) : request_(std::move(request)) {}

  // Nothing when both sides are sound, else the exit code.
  std::optional<int> check() {
    for (std::size_t i = 0; i < request_.sides.size(); ++i) {
      const ab::SideSpec& side = request_.sides[i];
      const ab::ChildEnd end = children_.run(check_command(side, request_.common), side.environment);
      if (children_.is_interrupted()) return run::exit_interrupted;
      if (end.exit_code == run::exit_ok) continue;
      fmt::print(stderr, "{}\nassay: side {} cannot be run ({}); nothing was started\n", end.said, side.label,
                 description_of(side, has_two_experiments()));
      return request_.bisects ? broken_side(i) : run::exit_usage;
    }
    const auto of_a = planned_cases(request_.sides[0], request_.common),
               of_b = planned_cases(request_.sides[1], request_.common);
    if (of_a && of_b)
      if (const std::vector<std::string> unmatched = ab::unmatched_cases(*of_a, *of_b); !unmatched.empty()) {
        fmt::print(stderr, "assay: {}; nothing was started\n", ab::problem_of(unmatched));
        return request_.bisects ? broken_side(1) : run::exit_usage;
      }
    if (request_.is_quiet || request_.is_json) return std::nullopt;
    for (const ab::SideSpec& side : request_.sides)
      fmt::print("{}: {}\n", side.label, description_of(side, has_two_experiments()));
    if (request_.names.is_one_thing)
      fmt::print(
          "A and B are the same (--a-a): no difference is expected; faster or slower would be a false verdict\n");
    fmt::print("{}", limits_text(request_.plan));
    std::fflush(stdout);
    return std::nullopt;
  }

  int run(const fs::path& folder) {
    request_.sides[0].folder = folder / "a", request_.sides[1].folder = folder / "b";
    for (ab::SideSpec& side : request_.sides) {
      create_folders(side.folder, "create the folder of a side");
      request_.names.folders.push_back(side.folder);
    }
    begin_ = std::chrono::steady_clock::now();
    ab::SessionParts parts;
    parts.run = [this](std::size_t side, std::int64_t repeat) { return take_turn(side, repeat); };
    parts.compare = [this](double confidence) { return compare_now(confidence); };
    parts.seconds = [this] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); };
    parts.tell = [this](const ab::PairTold& told) {
      if (request_.is_quiet || request_.is_json) return;
      fmt::print("{}\n", pair_line(told, request_.plan));
      std::fflush(stdout);
    };
    const ab::SessionResult result = run_session(request_.plan, parts);
    const int code = exit_code_of(result);
    if (!result.failure.empty())
      fmt::print(stderr, "assay: {}{}\n",
                 result.failed_both ? "" : fmt::format("side {}: ", request_.sides[result.failed_side].label),
                 result.failure);
    fmt::print("{}",
               request_.is_json ? result_json(result, request_.names, code) : result_text(result, request_.names));
    return code;
  }

 private:
  bool has_two_experiments() const { return request_.sides[0].experiment != request_.sides[1].experiment; }
  static int broken_side(std::size_t side) { return side == 0 ? exit_end_bisection : exit_skip_commit; }

  ab::TurnEnd take_turn(std::size_t index, std::int64_t repeat) {
    const ab::SideSpec& side = request_.sides[index];
    const ab::ChildEnd end = children_.run(turn_command(side, request_.common, repeat), side.environment);
    if (children_.is_interrupted()) return {true, ""};
    if (end.exit_code == run::exit_ok) {
      if (ab::is_empty(side.folder))
        return {false, fmt::format("{} has left no run; expected a program that understands `run`", side.executable)};
      const std::string change = ab::change_below(side.folder);
      if (change.empty()) return {};
      return {false,
              fmt::format("it has changed while the session went on: {}; start again when it stays as it is", change)};
    }
    std::string why = end.said;
    for (const std::string& line : ab::failures_below(side.folder)) why += (why.empty() ? "" : "\n") + line;
    return {false,
            fmt::format("run {} ended with exit code {}{}{}", repeat, end.exit_code, why.empty() ? "" : ": ", why)};
  }

  compare::Comparison compare_now(double confidence) {
    compare::ComparisonOptions options;
    options.metrics = {request_.names.metric};
    options.test = request_.names.test;
    options.test.confidence = confidence;
    ab::SidesCompared compared = ab::compare_folders(request_.sides[0].folder, request_.sides[1].folder, options);
    request_.names.across = std::move(compared.across);
    ab::hold_to_fewest_runs(compared.comparison, request_.plan.looks.min_runs);
    return std::move(compared.comparison);
  }

  int exit_code_of(const ab::SessionResult& result) const {
    if (result.end == ab::End::interrupted) return run::exit_interrupted;
    if (result.end == ab::End::failed) return request_.bisects ? broken_side(result.failed_side) : run::exit_failed;
    const bool is_slower = result.judgement.verdict == ab::Verdict::slower;
    const bool cannot_tell = result.judgement.verdict == ab::Verdict::cannot_tell;
    if (is_slower && (request_.bisects || request_.fails_if_slower)) return run::exit_failed;
    if (cannot_tell && request_.bisects) return exit_skip_commit;
    return cannot_tell && request_.fails_if_cannot_tell ? exit_cannot_tell : int{run::exit_ok};
  }

  AbRequest request_;
  ab::ChildRunner children_;
  std::chrono::steady_clock::time_point begin_;
};

int ab_of(const Arguments& arguments) {
  const ParsedOptions parsed = parse_options(arguments, "assay ab EXPERIMENT.toml [EXPERIMENT-OF-B.toml] [options]",
                                             ab_about, ab_options(), "experiment", -1);
  if (parsed.help) return run::exit_ok;
  AbRequest request = ab_request_in(parsed.values);
  const auto launched = wireup::launched_rank([](const char* name) { return std::getenv(name); });
  if (launched && launched->size > 1)
    throw UsageError(fmt::format("ab starts the runs itself; start it without {}",
                                 launched->is_by_hand() ? "ASSAY_RANK and ASSAY_RANKS" : launched->launcher));
  check_output(parsed.values);
  const fs::path experiment = request.sides[0].experiment;
  AbRun session(std::move(request));
  if (const auto code = session.check()) return *code;
  if (parsed.values.count("dry-run")) return run::exit_ok;
  return session.run(folder_of_session(parsed.values, experiment));
}

}  // namespace

int ab_command(const Arguments& arguments) {
  try {
    try {
      return ab_of(arguments);
    } catch (const compare::NoMetricError& e) {
      throw UsageError(e.what());
    }
  } catch (const std::exception& e) {
    // To `git bisect run` the codes 1 and 2 say that the commit is bad.
    if (std::find(arguments.begin(), arguments.end(), "--bisect") == arguments.end()) throw;
    fmt::print(stderr, "assay: {}\n", e.what());
    return exit_end_bisection;
  }
}

}  // namespace assay::host::cli
