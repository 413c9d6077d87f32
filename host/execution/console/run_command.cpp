#include "console/run_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <variant>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/host_list.hpp"
#include "common/sha256.hpp"
#include "common/usage_error.hpp"
#include "console/mistakes.hpp"
#include "console/reporter.hpp"
#include "experiment/resolved.hpp"
#include "hosts/host_launch.hpp"
#include "launch/launcher_watch.hpp"
#include "record/status.hpp"
#include "results/output_place.hpp"
#include "results/terminal.hpp"
#include "run/experiment_run.hpp"
#include "run/follower.hpp"
#include "run/found_device.hpp"
#include "run/load_experiment.hpp"
#include "run/node_health_check.hpp"
#include "run/node_ready_check.hpp"
#include "run/plan.hpp"
#include "run/resumption.hpp"
#include "run/shard_run.hpp"
#include "shard/shard_plan.hpp"

namespace assay::host::console {
namespace {

namespace fs = std::filesystem;

// How long the processes of a shard wait for one another: the one that leads first asks the scheduler about the attempt
// before it.
constexpr std::chrono::minutes wireup_patience{5};

run::RunOptions options_of_run(const RunRequest& request, const std::optional<results::ViewFile>& view_file,
                               const std::optional<wireup::LaunchedRank>& launched,
                               const std::optional<run::SweepPart>& part) {
  run::RunOptions options;
  options.resume = request.resume;
  options.start_new = request.start_new;
  options.any_machine = request.any_machine;
  options.in_process = request.in_process;
  options.view_file = view_file, options.launched = launched, options.part = part;
  return options;
}

// Of the processes of a launch one speaks for all.
std::optional<wireup::LaunchedRank> rank_of_this_launch() {
  const auto launched = wireup::launched_rank([](const char* name) { return std::getenv(name); });
  return launched && launched->size > 1 ? launched : std::nullopt;
}

ReportMode report_mode(const RunRequest& request) {
  if (request.json) return ReportMode::json;
  return request.quiet ? ReportMode::quiet : ReportMode::people;
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

// Prints the problems of this node, and leaves what it found in the shard's folder. Returns the exit code.
int look_at_node(const RunRequest& request, const fs::path& experiment_toml, const fs::path& folder) {
  run::NodeReadyQuestion question;
  question.folder = folder;
  question.node = request.job_node();
  question.environment = [](const char* name) { return std::getenv(name); };
  question.find_device = [](const std::string& wanted) { return run::ask_for_device(wanted); };
  const auto complain = [&](const std::string& problem) {
    fmt::print(stderr, "{}",
               results::lines_on_terminal(fmt::format("assay: node {}: {}", question.node, problem), STDERR_FILENO));
    return exit_failed;
  };
  try {
    question.plan = shard::read_shard_plan(folder);
  } catch (const StorageError& e) {
    return complain(
        fmt::format("it does not see what was submitted ({}); keep results on a file system that login node "
                    "and nodes share: --output FOLDER",
                    e.what()));
  }
  const shard::NodeReady ready = run::check_node_ready(
      question, run::load_submitted(experiment_toml, question.plan.experiment_file, question.plan.plugin_file));
  for (const std::string& problem : ready.problems) complain(problem);
  shard::write_node_ready(folder, request.job_start(), ready);
  if (!ready.is_ready()) return exit_failed;
  if (question.plan.promised.health.experiment.empty()) return exit_ok;
  shard::NodeHealth health;
  try {
    health = run::check_node_health(shard::batch_of_shard(folder), question.node, request.job_start(),
                                    question.plan.promised.health);
  } catch (const UsageError& e) {
    return complain(e.what());
  }
  for (const std::string& problem : health.problems) complain("it fails the site's health check: " + problem);
  return health.is_healthy() ? exit_ok : exit_unhealthy;
}

int run_on_hosts(const RunRequest& request, std::vector<SshHost> hosts, const std::vector<fs::path>& files,
                 const std::vector<fs::path>& plugins, const fs::path& results, const std::string& remedy = "") {
  hosts::HostLaunch launch{std::move(hosts), {"run"}, {}, results, request.node_ready};
  if (!remedy.empty()) launch.remedy = remedy;
  if (request.node_ready)
    for (SshHost& host : launch.hosts) host.slots = 1;
  // The name of a workload is no file; it has been found here, and its plugin is compared.
  std::copy_if(files.begin(), files.end(), std::back_inserter(launch.files),
               [](const fs::path& file) { return fs::exists(file); });
  launch.arguments.insert(launch.arguments.end(), request.arguments.begin(), request.arguments.end());
  launch.files.insert(launch.files.end(), plugins.begin(), plugins.end());
  if (request.hosts_file) launch.files.emplace_back(*request.hosts_file);
  return hosts::launch_on_hosts(launch);
}

// Nothing is written into a folder that is none of a shard. A node of a batch that does not see it says so itself.
void check_is_shard(const RunRequest& request, const fs::path& folder) {
  if (request.node_ready) return;
  std::error_code error;
  const bool is_folder = fs::is_directory(folder, error);
  const bool is_of_batch = shard::batch_of_shard(folder) / "shards" ==
                           fs::absolute(folder / ".").lexically_normal().parent_path().parent_path();
  if (is_folder && (is_of_batch || fs::exists(folder / "shard.json", error))) return;
  throw UsageError(
      fmt::format("--shard is {}; expected K/N, as in 1/4, or the folder of a shard, which `assay submit` has made: {}",
                  folder.string(), is_folder ? "this one has no shard.json" : "there is no such folder"));
}

// Throws UsageError, which names the option.
std::vector<SshHost> hosts_of_file(const std::string& file) try {
  return hosts_in_file(file);
} catch (const StorageError& e) {
  throw UsageError(fmt::format("--hosts: {}; expected a file with a host a line (\"n1\", \"n2:4\")", e.what()));
}

int run_shard_of_batch(const RunRequest& request, const std::vector<fs::path>& files, const fs::path& folder) {
  check_is_shard(request, folder);
  if (files.size() != 1)
    throw UsageError("--shard with the folder of a shard takes one file, the experiment.toml of its run");
  for (const auto& [option, is_given] :
       {std::pair{"set", !request.set.empty()}, std::pair{"filter", !request.filter.empty()},
        std::pair{"resume", request.resume}, std::pair{"output", request.output.has_value()},
        std::pair{"in-process", request.in_process}, std::pair{"dry-run", request.dry_run}})
    if (is_given) throw UsageError(fmt::format("--{} does not go with the folder of a shard", option));
  if (request.hosts_file && !std::getenv("ASSAY_HOSTS_LAUNCH"))
    return run_on_hosts(
        request, hosts_of_file(*request.hosts_file), files, {}, folder,
        fmt::format("`assay submit {}` continues the batch", shard::batch_of_shard(folder).parent_path().string()));
  if (request.node_ready) return look_at_node(request, files.front(), folder);
  std::optional<launch::LauncherWatch> watch;
  if (const char* text = std::getenv("ASSAY_LAUNCHER_PID"); text && std::strtol(text, nullptr, 10) > 1)
    watch.emplace(std::vector<pid_t>{static_cast<pid_t>(std::strtol(text, nullptr, 10))}, launch::end_with_launcher);
  run::ShardOptions options;
  options.folder = folder;
  options.start = request.job_start();
  options.nodes = request.job_nodes();
  options.launched = rank_of_this_launch();
  options.is_over = request.is_attempt_over;
  if (request.until) options.until = std::chrono::system_clock::time_point(std::chrono::seconds(*request.until));
  if (options.launched && options.launched->rank > 0) {
    std::signal(SIGUSR1, SIG_IGN);  // it is for the process that leads
    const int code = run::follow(*options.launched, folder, wireup_patience);
    // The verdict of the one that leads counts, and srun must not end it because this one was asked to end first.
    return code == exit_interrupted ? exit_ok : code;
  }
  // What cannot be mended by another start must not look like a job that was killed.
  try {
    options.plan = shard::read_shard_plan(folder);
    options.experiment_hash = sha256_of_file(files.front());
    run::LoadResult result = run::load_submitted(files.front(), options.plan.experiment_file, options.plan.plugin_file);
    if (!result.loaded) {
      run::write_verdict(folder, options.start, run::Verdict::failed);
      return report_mistakes(result.mistakes);
    }
    Reporter reporter(report_mode(request));
    return run::run_shard(result.loaded->experiment, result.loaded->target, options, reporter);
  } catch (const StorageError&) {
    run::write_verdict(folder, options.start, run::Verdict::failed);
    throw;
  } catch (const std::system_error&) {
    run::write_verdict(folder, options.start, run::Verdict::failed);
    throw;
  }
}

// A shell with an allocation of several nodes starts one process: whoever wants the others has to say srun.
void note_unused_nodes() {
  const auto number = [](const char* name) {
    const char* text = std::getenv(name);
    return text ? std::strtoll(text, nullptr, 10) : 0;
  };
  if (const auto nodes = number("SLURM_JOB_NUM_NODES"); nodes > 1)
    fmt::print(stderr,
               "note: this shell has job {} on {} nodes, and assay runs on this machine alone; "
               "`srun --ntasks-per-node=RANKS assay run ...` takes all of them\n",
               number("SLURM_JOB_ID"), nodes);
}

// What a launch of several experiments is to its ranks: as many launches, one after the other.
std::optional<wireup::LaunchedRank> nth_launch(std::optional<wireup::LaunchedRank> launched, std::size_t n) {
  if (launched && n > 0) launched->job_id += fmt::format("-{}", n + 1);
  return launched;
}

// Says what the plugins refuse, before anything starts. An experiment that allows failed cases wants to see them, and
// in this process a debugger waits for them.
int report_refused_cases(const std::vector<run::LoadedExperiment>& experiments, const RunRequest& request,
                         const std::optional<wireup::LaunchedRank>& launched, bool is_quiet) {
  std::vector<experiment::Mistake> mistakes;
  std::size_t refused = 0, cases = 0;
  if (request.in_process) return exit_ok;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    const run::LoadedExperiment& each = experiments[i];
    const std::vector<std::string> allow = run::run_wide_settings(each.experiment).allow;
    if (std::find(allow.begin(), allow.end(), record::name_of(record::Status::failed)) != allow.end()) continue;
    RefusedCases found = request.refused_cases(each, nth_launch(launched, i));
    mistakes.insert(mistakes.end(), found.mistakes.begin(), found.mistakes.end());
    refused += found.cases, cases += each.experiment.cases.size();
  }
  if (mistakes.empty()) return exit_ok;
  if (is_quiet) return exit_usage;
  if (refused < cases)
    fmt::print(stderr, "{}",
               results::line_on_terminal(
                   fmt::format("{} of {} cases {} refused; --filter runs the others, and [run] allow = [\"failed\"] "
                               "runs all of them and records what is refused",
                               refused, cases, refused == 1 ? "is" : "are"),
                   STDERR_FILENO));
  return report_mistakes(mistakes);
}

// The hosts whose ranks this process is to start; none where it is such a rank.
std::vector<SshHost> hosts_of(const RunRequest& request, const std::vector<run::LoadedExperiment>& experiments,
                              const std::optional<wireup::LaunchedRank>& launched) {
  std::vector<SshHost> hosts;
  std::string where;
  if (request.hosts_file) {
    hosts = hosts_of_file(*request.hosts_file), where = "--hosts";
  } else {
    for (const run::LoadedExperiment& each : experiments) {
      const std::vector<std::string>& texts = run::run_wide_settings(each.experiment).hosts;
      if (texts != run::run_wide_settings(experiments.front().experiment).hosts)
        throw UsageError("the experiments differ in [run] hosts; run those with other hosts by themselves");
      if (!texts.empty()) hosts = hosts_in(texts, "[run] hosts"), where = "[run] hosts";
    }
  }
  if (hosts.empty() || std::getenv("ASSAY_HOSTS_LAUNCH")) return {};
  if (launched)
    throw UsageError(fmt::format("{} names hosts, but {} {} ranks; leave the ranks to one of them{}", where,
                                 launched->who_tells(), launched->size,
                                 request.hosts_file ? "" : " (--set run.hosts=[])"));
  if (request.in_process) throw UsageError(fmt::format("--in-process does not go with {}", where));
  return hosts;
}

int run_all(const RunRequest& request) {
  if (request.experiments.empty()) throw UsageError("run needs an experiment file");
  for (const auto& [option, is_given] :
       {std::pair{"new", request.start_new}, std::pair{"any-machine", request.any_machine}})
    if (is_given && !request.resume)
      throw UsageError(fmt::format("--{} goes with --resume; without it each run is a new one", option));
  if (request.quiet && request.json) throw UsageError("--quiet and --json exclude each other");
  std::vector<fs::path> files;
  for (const std::string& file : request.experiments) files.emplace_back(file);
  std::optional<run::SweepPart> part;
  if (request.shard) {
    const auto text = *request.shard;
    part = part_in(text);
    if (!part) return run_shard_of_batch(request, files, text);
  }
  if (request.node_ready) throw UsageError("--node-ready goes with --shard and the folder of a shard alone");
  if (request.until) throw UsageError("--until goes with --shard and the folder of a shard alone");

  std::optional<results::ViewFile> view_file;
  std::vector<std::string> set = request.set;
  if (request.output) {
    const auto place = results::output_place(*request.output);
    // As if the file said so: the run's own experiment.toml then does.
    if (const auto* folder = std::get_if<fs::path>(&place))
      set.push_back("output.dir=" + experiment::toml_text(folder->string()));
    if (const auto* view = std::get_if<results::ViewFile>(&place)) view_file = *view;
    if (view_file && files.size() > 1)
      throw UsageError("--output names a file, and there are several experiments; expected a folder");
  }

  const std::optional<wireup::LaunchedRank> launched = rank_of_this_launch();
  const bool follows = launched && launched->rank > 0;
  // Whoever sets the variables by hand may leave when the ranks run.
  std::optional<launch::LauncherWatch> watch;
  if (launched && !launched->is_by_hand()) watch.emplace(launch::launcher_processes(), launch::end_with_launcher);
  if (!launched && !request.quiet && !request.json && !request.dry_run) note_unused_nodes();
  std::vector<run::LoadedExperiment> experiments;
  std::vector<experiment::Mistake> mistakes;
  for (const fs::path& file : files) {
    run::LoadResult result =
        run::load_experiment({file, std::nullopt, set, request.filter, request.plugin_path, request.text});
    if (result.loaded) experiments.push_back(std::move(*result.loaded));
    mistakes.insert(mistakes.end(), result.mistakes.begin(), result.mistakes.end());
  }
  if (!mistakes.empty()) return follows ? exit_usage : report_mistakes(mistakes);

  const std::vector<SshHost> hosts = hosts_of(request, experiments, launched);
  if (!hosts.empty() && !request.dry_run) {
    std::vector<fs::path> plugins;
    for (const run::LoadedExperiment& each : experiments) plugins.push_back(each.target.plugin_file);
    return run_on_hosts(request, hosts, files, plugins, experiments.front().experiment.output.dir);
  }
  if (part)
    for (run::LoadedExperiment& each : experiments) keep_part(each.experiment, *part);
  if (request.dry_run) {
    int worst = exit_ok;
    if (!follows)
      for (const run::LoadedExperiment& each : experiments)
        worst = std::max(
            worst, request.show_dry_run(each, options_of_run(request, std::nullopt, launched, part), request.json));
    return worst;
  }
  // Each rank of a launch finds it by itself: nobody waits for one that has left.
  if (const int code = report_refused_cases(experiments, request, launched, follows); code != exit_ok) return code;
  if (view_file && !follows) results::check_writable(*view_file);
  if (!launched)
    for (const run::LoadedExperiment& each : experiments)
      results::check_writable_folder(each.experiment.output.dir, each.experiment.name, request.output && !view_file);

  int worst = exit_ok;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    const experiment::Experiment& experiment = experiments[i].experiment;
    const auto ranks = nth_launch(launched, i);
    int code = exit_ok;
    if (follows) {
      code = run::follow(*ranks, experiment.output.dir, run::run_wide_settings(experiment).wireup_timeout);
    } else {
      Reporter reporter(report_mode(request));
      code = run::run_experiment(experiment, experiments[i].target, options_of_run(request, view_file, ranks, part),
                                 reporter);
    }
    worst = std::max(worst, code);
    if (code == exit_interrupted) break;
  }
  return worst;
}

}  // namespace

int run_experiments(const RunRequest& request) try { return run_all(request); } catch (const run::ResumeRefused& e) {
  fmt::print(stderr, "{}", results::lines_on_terminal(fmt::format("assay: {}", e.what()), STDERR_FILENO));
  return exit_usage;
}

}  // namespace assay::host::console
