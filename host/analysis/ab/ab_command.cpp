#include "ab/ab_command.hpp"

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
#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "compare/sides.hpp"
#include "compare/statistic_words.hpp"
#include "experiment/units.hpp"
#include "results/case_text.hpp"
#include "results/store.hpp"
#include "run/load_experiment.hpp"
#include "wireup/rank_source.hpp"

namespace assay::host::ab {
namespace {

namespace fs = std::filesystem;

constexpr int exit_cannot_tell = 3, exit_skip_commit = 125, exit_end_bisection = 255;

// Holds what the options ask for, after their check.
struct Checked {
  CommonPart common;
  std::vector<SideSpec> sides;
  SessionPlan plan;
  SessionNames names;
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

void check_settings(const std::vector<std::string>& settings, const std::string& option) {
  for (const std::string& setting : settings) {
    const std::string key = assignment_in(setting, option).first;
    if (key == "run.repeat" || key == "run.order")
      throw UsageError(fmt::format("--{} {}: `assay ab` decides how often a side runs; see --min-runs and --max-runs",
                                   option, setting));
  }
}

SideSpec side_in(const AbSide& given, const std::string& name, const std::string& label) {
  SideSpec side;
  side.label = label;
  side.executable = given.assay.value_or(this_program);
  side.settings = given.settings;
  check_settings(side.settings, name);
  side.plugin_folders = given.plugins;
  for (const std::string& folder : side.plugin_folders)
    if (std::error_code ignored; !fs::is_directory(folder, ignored))
      throw UsageError(fmt::format("--{}-plugins is {}, which is no folder; expected one with plugins", name, folder));
  for (const std::string& variable : given.env) side.environment.push_back(assignment_in(variable, name + "-env"));
  return side;
}

SessionPlan plan_in(const AbRequest& request) {
  SessionPlan plan;
  plan.looks.confidence = compare::share_of("confidence", request.confidence, 50, 99.9);
  plan.looks.min_runs = request.min_runs;
  plan.looks.max_runs = request.max_runs;
  const std::int64_t min_runs = plan.looks.min_runs, max_runs = plan.looks.max_runs;
  for (const auto& [name, runs] : {std::pair{"min-runs", min_runs}, std::pair{"max-runs", max_runs}})
    if (runs < fewest_runs || runs > most_runs)
      throw UsageError(fmt::format("--{} is {}; expected {} to {} runs a side: fewer do not show how much runs differ",
                                   name, runs, fewest_runs, most_runs));
  if (min_runs > max_runs) {
    const bool is_given = request.min_runs_given;
    throw UsageError(fmt::format("--max-runs is {}, and there is no look before {} runs a side ({}); {}", max_runs,
                                 min_runs, is_given ? "--min-runs" : "what --min-runs is without being given",
                                 is_given ? "expected --min-runs <= --max-runs"
                                          : fmt::format("add --min-runs {}, or leave out --max-runs", max_runs)));
  }
  const std::string max_time = request.max_time;
  const auto duration = experiment::parse_duration(max_time);
  if (!duration || duration->count() <= 0)
    throw UsageError(fmt::format("--max-time is '{}'; expected a duration, as 10m, 90s or 1h30m", max_time));
  plan.max_time_s = std::chrono::duration<double>(*duration).count();
  return plan;
}

void read_fail_if(const AbRequest& request, Checked& asked) {
  if (!request.fail_if) return;
  if (asked.bisects) throw UsageError("--bisect has other exit codes; leave out --fail-if");
  std::string rest = *request.fail_if;
  while (!rest.empty()) {
    const std::string word = rest.substr(0, rest.find(','));
    rest = word.size() < rest.size() ? rest.substr(word.size() + 1) : "";
    if (word == "slower")
      asked.fails_if_slower = true;
    else if (word == "cannot-tell")
      asked.fails_if_cannot_tell = true;
    else
      throw UsageError(fmt::format("--fail-if is '{}'; expected slower, cannot-tell, or both with a comma", word));
  }
}

// The command line says whether the sides differ, so that nobody starts an hour of runs of one thing by mistake.
void check_difference(bool is_one_thing, bool is_asked_for) {
  if (is_one_thing && !is_asked_for)
    throw UsageError(
        "A and B do not differ; add a difference, as by --a work=10 --b work=10.3, --b-plugins, --b-env or a second "
        "experiment, or add --a-a to test the machine itself");
  if (is_asked_for && !is_one_thing)
    throw UsageError(
        "--a-a tests the machine with equal sides, but A and B differ; leave out --a-a, or the difference");
}

Checked checked(const AbRequest& request) {
  const std::vector<std::string>& files = request.experiments;
  if (files.empty() || files.size() > 2)
    throw UsageError("ab needs one experiment file, or two: that of A, and that of B");
  if (request.quiet && request.json) throw UsageError("--quiet and --json exclude each other");
  Checked asked;
  asked.common = {request.set, request.filter, request.plugin_path};
  check_settings(asked.common.settings, "set");
  asked.sides = {side_in(request.a, "a", "A"), side_in(request.b, "b", "B")};
  asked.sides[0].experiment = files.front(), asked.sides[1].experiment = files.back();
  asked.names.is_one_thing = asked.sides[0].equals(asked.sides[1]);
  asked.bisects = request.bisect;
  read_fail_if(request, asked);
  asked.plan = plan_in(request);
  asked.plan.stops_at_worse = asked.bisects || asked.fails_if_slower;
  asked.names.metric = request.metric;
  asked.names.statistic = request.statistic;
  asked.names.test.statistic = compare::statistic_of(request.statistic);
  asked.names.test.threshold = compare::share_of("threshold", request.threshold, 0, 100);
  asked.names.test.run_to_run = compare::share_of("run-to-run", request.run_to_run, 0, 100);
  asked.names.test.states = compare::share_of("states", request.states, 0, 100);
  asked.is_quiet = request.quiet, asked.is_json = request.json;
  check_difference(asked.names.is_one_thing, request.a_a);
  return asked;
}

void check_output(const AbRequest& request) {
  if (!request.output) return;
  const fs::path folder = *request.output;
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
std::optional<std::vector<PlannedCase>> planned_cases(const SideSpec& side, const CommonPart& common) {
  if (side.executable != this_program) return std::nullopt;
  run::ExperimentSource source{side.experiment, std::nullopt, common.settings, common.filters, side.plugin_folders};
  source.set.insert(source.set.end(), side.settings.begin(), side.settings.end());
  source.set.emplace_back("run.repeat=1");
  source.plugin_folders.insert(source.plugin_folders.end(), common.plugin_folders.begin(), common.plugin_folders.end());
  const run::LoadResult result = run::load_experiment(source);
  if (!result.loaded) return std::nullopt;
  std::vector<PlannedCase> cases;
  for (const experiment::Case& c : result.loaded->experiment.cases) {
    PlannedCase planned{results::case_label(c.axes), {}, {}};
    for (const auto& [key, value] : c.params) planned.inputs[key] = input_text(value);
    for (const auto& [key, value] : c.axes) planned.inputs.emplace(key, input_text(value)), planned.axes.push_back(key);
    cases.push_back(std::move(planned));
  }
  return cases;
}

// Made anew: what another session has left would be taken for runs of this one.
fs::path folder_of_session(const AbRequest& request, const fs::path& experiment) {
  if (!request.output) {
    const fs::path parent = fs::path("results") / ("ab-" + experiment.stem().string());
    create_folders(parent, "create the results folder");
    std::random_device random;
    return results::make_unique_folder(parent, utc_stamp(std::chrono::system_clock::now()),
                                       [&random] { return random(); });
  }
  const fs::path folder = *request.output;
  create_folders(folder, "create the folder for both sides");
  return folder;
}

class AbRun {
 public:
  explicit AbRun(Checked request) : request_(std::move(request)) {}

  // Returns the exit code where a side is not sound.
  std::optional<int> check() {
    for (std::size_t i = 0; i < request_.sides.size(); ++i) {
      const SideSpec& side = request_.sides[i];
      const ChildEnd end = children_.run(check_command(side, request_.common), side.environment);
      if (children_.is_interrupted()) return exit_interrupted;
      if (end.exit_code == exit_ok) continue;
      fmt::print(stderr, "{}\nassay: side {} cannot be run ({}); nothing was started\n", end.said, side.label,
                 description_of(side, has_two_experiments()));
      return request_.bisects ? broken_side(i) : exit_usage;
    }
    const auto of_a = planned_cases(request_.sides[0], request_.common),
               of_b = planned_cases(request_.sides[1], request_.common);
    if (of_a && of_b)
      if (const std::vector<std::string> unmatched = unmatched_cases(*of_a, *of_b); !unmatched.empty()) {
        fmt::print(stderr, "assay: {}; nothing was started\n", problem_of(unmatched));
        return request_.bisects ? broken_side(1) : exit_usage;
      }
    if (request_.is_quiet || request_.is_json) return std::nullopt;
    for (const SideSpec& side : request_.sides)
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
    for (SideSpec& side : request_.sides) {
      create_folders(side.folder, "create the folder of a side");
      request_.names.folders.push_back(side.folder);
    }
    begin_ = std::chrono::steady_clock::now();
    SessionParts parts;
    parts.run = [this](std::size_t side, std::int64_t repeat) { return take_turn(side, repeat); };
    parts.compare = [this](double confidence) { return compare_now(confidence); };
    parts.seconds = [this] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); };
    parts.report = [this](const Round& round) {
      if (request_.is_quiet || request_.is_json) return;
      fmt::print("{}\n", pair_line(round, request_.plan));
      std::fflush(stdout);
    };
    const SessionResult result = run_session(request_.plan, parts);
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

  TurnEnd take_turn(std::size_t index, std::int64_t repeat) {
    const SideSpec& side = request_.sides[index];
    const ChildEnd end = children_.run(turn_command(side, request_.common, repeat), side.environment);
    if (children_.is_interrupted()) return {true, ""};
    if (end.exit_code == exit_ok) {
      if (ab::is_empty(side.folder))
        return {false, fmt::format("{} has left no run; expected a program that understands `run`", side.executable)};
      const std::string change = change_below(side.folder);
      if (change.empty()) return {};
      return {false,
              fmt::format("it has changed during the session: {}; start again when it no longer changes", change)};
    }
    std::string why = end.said;
    for (const std::string& line : failures_below(side.folder)) why += (why.empty() ? "" : "\n") + line;
    return {false,
            fmt::format("run {} ended with exit code {}{}{}", repeat, end.exit_code, why.empty() ? "" : ": ", why)};
  }

  compare::Comparison compare_now(double confidence) {
    compare::ComparisonOptions options;
    options.metrics = {request_.names.metric};
    options.test = request_.names.test;
    options.test.confidence = confidence;
    SidesCompared compared = compare_folders(request_.sides[0].folder, request_.sides[1].folder, options);
    request_.names.across = std::move(compared.across);
    hold_to_fewest_runs(compared.comparison, request_.plan.looks.min_runs);
    return std::move(compared.comparison);
  }

  int exit_code_of(const SessionResult& result) const {
    if (result.end == End::interrupted) return exit_interrupted;
    if (result.end == End::failed) return request_.bisects ? broken_side(result.failed_side) : exit_failed;
    const bool is_slower = result.judgement.verdict == Verdict::slower;
    const bool cannot_tell = result.judgement.verdict == Verdict::cannot_tell;
    if (is_slower && (request_.bisects || request_.fails_if_slower)) return exit_failed;
    if (cannot_tell && request_.bisects) return exit_skip_commit;
    return cannot_tell && request_.fails_if_cannot_tell ? exit_cannot_tell : int{exit_ok};
  }

  Checked request_;
  ChildRunner children_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace

int run_in_turns(const AbRequest& request) {
  Checked asked = checked(request);
  const auto launched = wireup::launched_rank([](const char* name) { return std::getenv(name); });
  if (launched && launched->size > 1)
    throw UsageError(fmt::format("ab starts the runs itself; start it without {}",
                                 launched->is_by_hand() ? "ASSAY_RANK and ASSAY_RANKS" : launched->launcher));
  check_output(request);
  const fs::path experiment = asked.sides[0].experiment;
  AbRun session(std::move(asked));
  if (const auto code = session.check()) return *code;
  if (request.dry_run) return exit_ok;
  return session.run(folder_of_session(request, experiment));
}

int ending_bisection(const std::vector<std::string>& arguments, const std::function<int()>& command) try {
  return command();
} catch (const std::exception& e) {
  if (std::find(arguments.begin(), arguments.end(), "--bisect") == arguments.end()) throw;
  fmt::print(stderr, "assay: {}\n", e.what());
  return exit_end_bisection;
}

}  // namespace assay::host::ab
