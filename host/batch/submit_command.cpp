#include "batch/submit_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "batch/named_batch.hpp"
#include "batch/script.hpp"
#include "batch/site_kinds.hpp"
#include "batch/submit.hpp"
#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/sha256.hpp"
#include "common/suggest.hpp"
#include "common/text_format.hpp"
#include "common/usage_error.hpp"
#include "common/utc.hpp"
#include "console/mistakes.hpp"
#include "record/json.hpp"
#include "results/output_place.hpp"
#include "results/reader.hpp"
#include "results/store.hpp"
#include "run/load_experiment.hpp"
#include "shard/journal.hpp"
#include "shard/shard_plan.hpp"
#include "telemetry/environment.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

Site site_of(const SubmitRequest& request, std::vector<experiment::Mistake>& mistakes) {
  const auto word = request.site ? std::optional(*request.site) : std::nullopt;
  SiteResult result = read_site(find_site(word));
  mistakes.insert(mistakes.end(), result.mistakes.begin(), result.mistakes.end());
  return result.site ? std::move(*result.site) : Site{};
}

// Pairs of neighbours in a ring: each node is in two of them, unless there are only two.
std::vector<std::string> groups_of_nodes(const std::vector<std::string>& nodes, std::int64_t size) {
  if (size == 1) return nodes;
  std::vector<std::string> groups;
  if (static_cast<std::int64_t>(nodes.size()) < size) return groups;
  const std::size_t count = static_cast<std::int64_t>(nodes.size()) == size ? 1 : nodes.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string> group;
    for (std::int64_t k = 0; k < size; ++k) group.push_back(nodes[(i + static_cast<std::size_t>(k)) % nodes.size()]);
    groups.push_back(fmt::format("{}", fmt::join(group, "+")));
  }
  return groups;
}

// The usable nodes of the site; the others are named.
std::vector<std::string> usable_nodes(const Site& site) {
  std::vector<std::string> usable;
  std::set<std::string> seen;
  for (const SiteNode& node : site_kind(site).nodes(site)) {
    if (!seen.insert(node.name).second) continue;
    if (std::find(site.exclude.begin(), site.exclude.end(), node.name) != site.exclude.end()) continue;
    if (node.is_usable)
      usable.push_back(node.name);
    else
      fmt::print("note: node {} is {} and is left out\n", node.name, node.state);
  }
  return usable;
}

bool may_use_gpus(const experiment::Experiment& experiment) {
  return std::any_of(experiment.cases.begin(), experiment.cases.end(),
                     [](const experiment::Case& c) { return c.run.device != "cpu"; });
}

struct Prepared {
  run::LoadedExperiment loaded;
  BatchPlan plan;
};

class SubmitCommand {
 public:
  explicit SubmitCommand(const SubmitRequest& request) : request_(request) {}

  int run() {
    const std::vector<std::string> given = request_.experiments;
    std::error_code ignored;
    if (given.size() == 1 && (fs::is_directory(given.front(), ignored) || has_submission(given.front())))
      return again(batch_run(given.front()));
    if (request_.resubmit) return again(newest_batch_of(given));
    return submit(given);
  }

 private:
  run::LoadResult load(const std::string& file, const std::vector<std::string>& more_settings) const {
    std::vector<std::string> settings = request_.set;
    settings.insert(settings.end(), more_settings.begin(), more_settings.end());
    run::LoadResult result =
        run::load_experiment({file, std::nullopt, settings, request_.filter, request_.plugin_path});
    if (result.loaded && result.loaded->experiment.output.repeat > 1)
      return {std::nullopt,
              {{file, 0, 0,
                fmt::format("[run] repeat is {}, but a batch has one record for each case; expected repeat = 1: submit "
                            "it several times, and give the runs to `assay compare` as one side",
                            result.loaded->experiment.output.repeat)}}};
    if (result.loaded && request_.output) {
      const auto place = results::output_place(*request_.output);
      if (!std::holds_alternative<fs::path>(place))
        throw UsageError("--output of a batch names a folder for results; `assay collect --output FILE` writes a view");
      result.loaded->experiment.output.dir = std::get<fs::path>(place);
    }
    return result;
  }

  // The nodes, or groups of nodes, become the last axis.
  run::LoadResult load_for_nodes(const std::string& file, const Site& site) {
    run::LoadResult result = load(file, {});
    if (!result.loaded) return result;
    const experiment::ClusterSettings first = result.loaded->experiment.cases.front().cluster;
    if (!first.each_node || first.node) return result;
    for (const experiment::Case& c : result.loaded->experiment.cases)
      if (c.cluster.nodes != first.nodes || !c.cluster.each_node)
        return {std::nullopt,
                {{file, 0, 0,
                  "[cluster] each_node with a sweep of cluster.nodes or cluster.each_node; expected "
                  "one number of nodes for all cases"}}};
    const std::vector<std::string> nodes = usable_nodes(site);
    const std::vector<std::string> groups = groups_of_nodes(nodes, first.nodes);
    if (groups.empty())
      return {std::nullopt,
              {{file, 0, 0,
                fmt::format("[cluster] each_node with nodes = {}, but the site has {} usable node(s)", first.nodes,
                            nodes.size())}}};
    return load(file, {fmt::format("sweep.cluster.node=[\"{}\"]", fmt::join(groups, "\", \""))});
  }

  int submit(const std::vector<std::string>& files) {
    std::vector<experiment::Mistake> mistakes;
    const Site site = site_of(request_, mistakes);
    if (request_.check) return check(site, mistakes, files);
    std::vector<Prepared> prepared;
    std::int64_t array_size_max = 1;
    // A mistake of the site comes before all that the site decides.
    if (mistakes.empty())
      array_size_max = request_.dry_run ? array_size_or_standard(site) : scheduler_of(site)->array_size_max();
    for (const std::string& file : files) {
      run::LoadResult result = mistakes.empty() ? load_for_nodes(file, site) : load(file, {});
      mistakes.insert(mistakes.end(), result.mistakes.begin(), result.mistakes.end());
      if (result.loaded && mistakes.empty()) {
        const auto budgets = budgets_of(result.loaded->experiment, site, result.loaded->experiment.output.dir);
        BatchPlan plan = plan_batch(result.loaded->experiment, site, budgets, array_size_max);
        prepared.push_back({std::move(*result.loaded), std::move(plan)});
      }
    }
    if (!mistakes.empty()) return console::report_mistakes(mistakes);
    double node_hours = 0;
    for (const Prepared& each : prepared) node_hours += each.plan.node_hours;
    if (site.limits.node_hours && node_hours > *site.limits.node_hours)
      throw UsageError(fmt::format(
          "the batch may take {:.1f} node-hours by its budgets, and {} allows {:.1f}; lower [cluster] budget, "
          "submit fewer cases with --filter, or raise [{}.limits] node_hours",
          node_hours, site.file.string(), *site.limits.node_hours, site.kind()));
    if (request_.dry_run) {
      print_batches(prepared, site, node_hours);
      return show_plans_of_cases(prepared, site);
    }
    if (std::any_of(prepared.begin(), prepared.end(),
                    [](const Prepared& each) { return may_use_gpus(each.loaded.experiment); }))
      say_gpus(site);
    // All of them before the first is written.
    for (const Prepared& each : prepared)
      for (const PackedArray& packed : each.plan.arrays) try_script(each.loaded, site, packed.shape);
    for (const Prepared& each : prepared) write_and_queue(each, site);
    return exit_ok;
  }

  // Only notes need the answer, so that a scheduler which does not give it keeps nothing from being queued.
  static void say_gpus(const Site& site) try {
    if (const auto notes_on_gpus = site_kind(site).notes_on_gpus)
      for (const std::string& note : notes_on_gpus(site)) fmt::print("note: {}\n", note);
  } catch (const SchedulerError& e) {
    fmt::print("note: whether nodes have GPUs that no job asks for is not known: {}\n", one_line(e.what()));
  }

  // What makes the script of an array that is not submitted: of a run that is not there.
  static ScriptInput shown_input(const run::LoadedExperiment& loaded, const Site& site, const SubmittedArray& array) {
    Submission submission;
    submission.experiment_file = loaded.file, submission.plugin_file = loaded.target.plugin_file.string();
    submission.attempts = site.limits.attempts;
    const experiment::Experiment& experiment = loaded.experiment;
    return script_input(site, array, submission, experiment.name, experiment.output.dir / experiment.name / "RUN",
                        fs::read_symlink("/proc/self/exe"));
  }

  // Makes what jobs of this shape would run, for its errors alone: before there is a folder. Throws SiteError.
  static void try_script(const run::LoadedExperiment& loaded, const Site& site, const Shape& shape) {
    SubmittedArray array;
    array.shape = shape, array.tasks = 1, array.id = "0000000000000000";
    const ScriptInput input = shown_input(loaded, site, array);
    site_kind(site).script(input);
    if (const auto end_script = site_kind(site).end_script)
      end_script(site, array.id, input.run_name, input.run, input.assay);
  }

  // Without its scheduler a dry run still shows shards and scripts.
  std::int64_t array_size_or_standard(const Site& site) const try {
    return scheduler_of(site)->array_size_max();
  } catch (const SchedulerError& e) {
    fmt::print("note: {}; arrays of up to 1001 jobs are assumed\n", e.what());
    return 1001;
  }

  int check(const Site& site, std::vector<experiment::Mistake> mistakes, const std::vector<std::string>& files) {
    std::vector<Shape> shapes;
    std::vector<std::string> problems;
    CheckedRuns runs;
    bool may_use_gpus = false;
    const auto add = [](std::vector<fs::path>& paths, const fs::path& path) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    };
    for (const std::string& file : files) {
      run::LoadResult result = load(file, {});
      mistakes.insert(mistakes.end(), result.mistakes.begin(), result.mistakes.end());
      if (!result.loaded) continue;
      add(runs.plugins, result.loaded->target.plugin_file);
      add(runs.results, result.loaded->experiment.output.dir / result.loaded->experiment.name);
      if (!mistakes.empty()) continue;
      may_use_gpus = may_use_gpus || batch::may_use_gpus(result.loaded->experiment);
      std::vector<Shape> of_file;
      for (const experiment::Case& c : result.loaded->experiment.cases)
        if (const auto shape = shape_of(c, site.gpus_per_node);
            std::find(of_file.begin(), of_file.end(), shape) == of_file.end())
          of_file.push_back(shape);
      for (const Shape& shape : of_file) {
        if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
        try {
          try_script(*result.loaded, site, shape);
        } catch (const SiteError& e) {
          if (std::find(problems.begin(), problems.end(), e.what()) == problems.end()) problems.emplace_back(e.what());
        }
      }
    }
    if (!mistakes.empty()) return console::report_mistakes(mistakes);
    const SiteFindings findings = site_kind(site).check(site, shapes, runs);
    problems.insert(problems.end(), findings.problems.begin(), findings.problems.end());
    for (const std::string& note : findings.notes) fmt::print("note: {}\n", note);
    if (may_use_gpus) say_gpus(site);
    for (const std::string& problem : problems) fmt::print(stderr, "{}: {}\n", site.file.string(), problem);
    if (problems.empty())
      fmt::print("{}: {} would take jobs of {} shape{}\n", site.file.string(), site_kind(site).shown, shapes.size(),
                 shapes.size() == 1 ? "" : "s");
    else
      fmt::print(stderr, "{} problem{}; nothing was queued\n", problems.size(), problems.size() == 1 ? "" : "s");
    return problems.empty() ? exit_ok : exit_usage;
  }

  int show_plans_of_cases(const std::vector<Prepared>& prepared, const Site& site) const {
    int worst = exit_ok;
    for (const Prepared& each : prepared) worst = std::max(worst, request_.plan_of_batch(each.loaded, site));
    return worst;
  }

  static void print_batches(const std::vector<Prepared>& prepared, const Site& site, double node_hours) {
    for (const Prepared& each : prepared) {
      fmt::print("{}: {} cases\n", each.loaded.experiment.name, each.loaded.experiment.cases.size());
      std::int64_t number = 0;
      for (const PackedArray& packed : each.plan.arrays) {
        SubmittedArray array;
        array.number = number++, array.shape = packed.shape,
        array.tasks = static_cast<std::int64_t>(packed.shards.size());
        array.limit_s = job_limit_s(packed, site);
        array.is_canary = packed.is_canary, array.id = "0000000000000000";
        fmt::print("\narray {}: {} shard{} of {}, up to {:.0f} min each{}\n", array.number, array.tasks,
                   array.tasks == 1 ? "" : "s", array.shape.text(), array.limit_s / 60,
                   array.is_canary ? "; the canary: the others wait until it is ok" : "");
        for (std::size_t task = 0; task < std::min<std::size_t>(packed.shards.size(), 20); ++task) {
          const PackedShard& shard = packed.shards[task];
          fmt::print("  shard {}-{:04}: {} case{}, from {}, {:.0f} s by their budgets\n", array.number, task,
                     shard.cases.size(), shard.cases.size() == 1 ? "" : "s", shard.cases.front().index + 1,
                     shard.budget_s());
        }
        if (packed.shards.size() > 20) fmt::print("  and {} more\n", packed.shards.size() - 20);
        fmt::print("\n{}", site_kind(site).script(shown_input(each.loaded, site, array)));
      }
      say_budgets(each.plan);
    }
    fmt::print("\nnode-hours by the budgets: {:.2f}; nothing was queued\n", node_hours);
  }

  static void say_budgets(const BatchPlan& plan) {
    if (plan.cases_without_budget > 0)
      fmt::print("note: {} case{} no [cluster] budget and no earlier record: the site's case_budget counts\n",
                 plan.cases_without_budget, plan.cases_without_budget == 1 ? " has" : "s have");
  }

  void write_and_queue(const Prepared& each, const Site& site) {
    const experiment::Experiment& experiment = each.loaded.experiment;
    Submission submission;
    fs::path run;
    {
      auto folder = results::RunFolder::create(experiment.output.dir, experiment.name, experiment.resolved_toml,
                                               record::json_text(telemetry::capture_environment(), 2));
      folder.become_latest();
      for (const std::string& note : folder.notes()) fmt::print("note: {}\n", note);
      run = fs::absolute(folder.path()).lexically_normal();
    }
    submission.experiment_file = fs::absolute(each.loaded.file).lexically_normal().string();
    submission.experiment_hash = sha256_of_file(run / "experiment.toml");
    submission.plugin_file = each.loaded.target.plugin_file.string(),
    submission.plugin_hash = each.loaded.target.file_hash;
    submission.site = fs::absolute(site.file).lexically_normal().string(), submission.target = site.target();
    submission.submitted_s = seconds_since_1970();
    submission.attempts = site.limits.attempts, submission.array_parallel = site.limits.array_parallel;
    create_folders(batch_folder(run));
    const SubmissionLock lock(run);
    write_round(run, submission, each.plan, site, fs::read_symlink("/proc/self/exe"), experiment.name);
    say_budgets(each.plan);
    queue(run, submission);
    fmt::print("{} case{}, {:.2f} node-hours by their budgets\n", experiment.cases.size(),
               experiment.cases.size() == 1 ? "" : "s", each.plan.node_hours);
  }

  // The folder is told first: whatever happens now, `assay submit RUN` goes on.
  void queue(const fs::path& run, Submission& submission) {
    fmt::print("run: {}\n", run.string());
    std::fflush(stdout);
    try {
      queue_arrays(run, submission, *scheduler_of(submission, run),
                   [](const std::string& line) { fmt::print("  {}\n", line); });
    } catch (const SchedulerError& e) {
      throw SchedulerError(
          fmt::format("{}; jobs that were taken stay queued; continue with: assay submit {}; if the request itself is "
                      "refused, submit the corrected experiment instead",
                      e.what(), run.string()));
    }
  }

  fs::path newest_batch_of(const std::vector<std::string>& given) {
    if (given.size() != 1) throw UsageError("--resubmit takes one experiment, or the folder of a run");
    run::LoadResult result = load(given.front(), {});
    if (!result.loaded) {
      console::report_mistakes(result.mistakes);
      throw UsageError("the experiment has mistakes");
    }
    const experiment::Experiment& experiment = result.loaded->experiment;
    const fs::path run = batch_run((experiment.output.dir / experiment.name).string());
    const bool is_expanded = experiment.cases.front().cluster.each_node;
    if (!is_expanded && experiment.resolved_toml != read_file(run / "experiment.toml"))
      throw UsageError(fmt::format(
          "{} has changed since {} was submitted; submit it anew, or name the run: assay submit {} --resubmit {}",
          given.front(), run.string(), run.string(), *request_.resubmit));
    return run;
  }

  std::set<std::string> words_of_resubmit() const {
    std::set<std::string> words;
    if (!request_.resubmit) return words;
    std::string rest = *request_.resubmit;
    for (std::size_t comma = 0; comma != std::string::npos;) {
      comma = rest.find(',');
      const std::string word = rest.substr(0, comma);
      std::vector<std::string> known{"lost", "cancelled", "failed", "quarantined", "blocked"};
      for (const std::string& status : record::status_words()) known.push_back(status);
      if (std::find(known.begin(), known.end(), word) == known.end())
        throw UsageError(
            fmt::format("--resubmit has '{}'; expected lost, cancelled, failed, quarantined, blocked, or statuses of "
                        "records, with commas{}",
                        word, did_you_mean(word, known)));
      words.insert(word);
      if (comma != std::string::npos) rest = rest.substr(comma + 1);
    }
    return words;
  }

  // Goes on with a submission, and submits again what is asked for.
  int again(const fs::path& run) {
    for (const auto& [option, is_given] :
         {std::pair{"check", request_.check}, std::pair{"set", !request_.set.empty()},
          std::pair{"filter", !request_.filter.empty()}, std::pair{"output", request_.output.has_value()},
          std::pair{"plugin-path", !request_.plugin_path.empty()}})
      if (is_given)
        throw UsageError(
            fmt::format("--{} does not go with a batch that was submitted: its cases are what they are", option));
    const std::set<std::string> words = words_of_resubmit();
    const SubmissionLock lock(run);
    Submission submission = read_submission(run);
    if (words.empty() && request_.dry_run) {
      const auto open = std::count_if(submission.arrays.begin(), submission.arrays.end(),
                                      [](const SubmittedArray& array) { return !array.job; });
      fmt::print("{}: {} of {} arrays are not known to be queued; nothing was queued\n", run.string(), open,
                 submission.arrays.size());
      return exit_ok;
    }
    const auto why_no_host = batch::why_no_host(run, submission);
    if (words.empty()) {
      if (why_no_host) throw UsageError(*why_no_host);
      queue(run, submission);
      return exit_ok;
    }
    std::vector<experiment::Mistake> mistakes;
    const Site site = request_.site ? site_of(request_, mistakes) : site_in(submission.site, mistakes);
    if (!mistakes.empty()) return console::report_mistakes(mistakes);
    if (const auto why = why_another_site(site, submission)) throw UsageError(*why);
    run::LoadResult loaded =
        run::load_submitted(run / "experiment.toml", submission.experiment_file, submission.plugin_file);
    if (!loaded.loaded) return console::report_mistakes(loaded.mistakes);
    if (loaded.loaded->target.file_hash != submission.plugin_hash)
      throw UsageError(fmt::format("the plugin {} is not what was submitted; restore it, or submit the experiment anew",
                                   loaded.loaded->target.plugin_file.string()));
    const auto queue_now =
        scheduler_of(submission, run)
            ->queue(submission.users);  // no case is submitted again while nobody knows whether its job lives
    const RunStatus status = read_status(run, submission, queue_now, "", seconds_since_1970());
    std::vector<std::int64_t> chosen;
    std::map<fs::path, std::vector<std::int64_t>> by_shard;  // that have them now
    std::map<std::int64_t, std::int64_t> unfinished;
    for (const CaseStatus& c : status.cases) {
      const std::string word = c.has_failed() ? "failed" : name_of(c.state);
      if (!words.contains(word) && !(c.state == CaseState::finished && words.contains(c.status))) continue;
      chosen.push_back(c.index);
      by_shard[submission.arrays[static_cast<std::size_t>(c.array)].shard_folder(run, c.task)].push_back(c.index);
      if (c.state == CaseState::lost || c.state == CaseState::cancelled) unfinished[c.index] = c.unfinished;
    }
    if (chosen.empty()) {
      fmt::print("no case of {} is {}\n", run.string(), fmt::join(words, " or "));
      return exit_ok;
    }
    if (why_no_host) throw UsageError(*why_no_host);
    const auto budgets = budgets_of(loaded.loaded->experiment, site, run.parent_path().parent_path());
    const BatchPlan plan = plan_batch(loaded.loaded->experiment, site, budgets, scheduler_of(site)->array_size_max(),
                                      &chosen, unfinished, words.contains("blocked"));
    if (site.limits.node_hours && plan.node_hours + status.node_hours_used > *site.limits.node_hours)
      throw UsageError(fmt::format(
          "the batch has used {:.1f} node-hours and may take {:.1f} more, and {} allows {:.1f}; raise "
          "[{}.limits] node_hours",
          status.node_hours_used, plan.node_hours, site.file.string(), *site.limits.node_hours, site.kind()));
    if (request_.dry_run) {
      fmt::print("{} case{} would be submitted again, {:.2f} node-hours by their budgets\n", chosen.size(),
                 chosen.size() == 1 ? "" : "s", plan.node_hours);
      return exit_ok;
    }
    submission.attempts = site.limits.attempts, submission.array_parallel = site.limits.array_parallel;
    for (const auto& [folder, moved] : by_shard) shard::mark_moved(folder, moved);
    write_round(run, submission, plan, site, fs::read_symlink("/proc/self/exe"), loaded.loaded->experiment.name);
    queue(run, submission);
    fmt::print("{} case{} submitted again, {:.2f} node-hours by their budgets\n", chosen.size(),
               chosen.size() == 1 ? "" : "s", plan.node_hours);
    return exit_ok;
  }

  static Site site_in(const std::string& file, std::vector<experiment::Mistake>& mistakes) {
    SiteResult result = read_site(file);
    mistakes.insert(mistakes.end(), result.mistakes.begin(), result.mistakes.end());
    return result.site ? std::move(*result.site) : Site{};
  }

  const SubmitRequest& request_;
};

}  // namespace

int submit(const SubmitRequest& request) {
  if (request.device && !request.dry_run)
    throw UsageError("--device goes with --dry-run; the jobs run on what [run] device finds on their nodes");
  if (request.check && request.dry_run) throw UsageError("--check and --dry-run exclude each other");
  return SubmitCommand(request).run();
}

}  // namespace assay::host::batch
