#include "batch/submit.hpp"

#include "batch/site_kinds.hpp"
#include "common/files.hpp"
#include "common/host_file_name.hpp"
#include "common/host_list.hpp"
#include "common/parallel.hpp"
#include "common/sha256.hpp"
#include "shard/node_health.hpp"
#include "shard/shard_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

// Its name is flushed with those of the others.
void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_storage_error("create the folder", folder, error.value());
}

// Whether some attempt of the array has begun: its job's number stands in the claim, but an array has the number of its
// last task.
bool has_begun(const fs::path& run, const SubmittedArray& array) {
  for (std::int64_t task = 0; task < array.tasks; ++task)
    if (!shard::read_attempts(array.shard_folder(run, task)).empty()) return true;
  return false;
}

bool has_active_job(const std::vector<QueuedJob>& queue, const SubmittedArray& array) {
  return std::any_of(queue.begin(), queue.end(),
                     [&array](const QueuedJob& job) { return job.is_active() && array.has(job); });
}

std::optional<SubmittedJob> job_by_comment(const std::vector<QueuedJob>& queue, const std::string& id) {
  for (const QueuedJob& job : queue)
    if (job.comment == comment_of(id)) return SubmittedJob{job.array, job.cluster};
  return std::nullopt;
}

fs::path end_file(const fs::path& run, std::int64_t round, const char* kind) {
  return batch_folder(run) / fmt::format("end-{}.{}", round, kind);
}

// Of the job after the arrays of a round: that of its first array, and a word.
std::string end_id(const Submission& submission, std::int64_t round) {
  for (const SubmittedArray& array : submission.arrays)
    if (array.round == round) return array.id + "-end";
  return "";
}

// Queues what comes after the arrays of each round, once. Jobs that are gone do not hold it up, nor does a canary that
// failed: whatever became of the batch, it has ended.
void queue_ends(const fs::path& run, const Submission& submission, const Scheduler& scheduler,
                const std::vector<QueuedJob>& queue, const std::function<void(const std::string&)>& said) {
  std::map<std::int64_t, std::vector<std::string>> after;  // by round
  for (const SubmittedArray& array : submission.arrays)
    if (array.job && *array.job != job_gone) after[array.round].push_back(*array.job);
  for (const auto& [round, jobs] : after) {
    std::error_code ignored;
    if (!fs::exists(end_file(run, round, "sbatch"), ignored) || fs::exists(end_file(run, round, "job"), ignored))
      continue;
    auto job = job_by_comment(queue, end_id(submission, round));
    if (!job) job = scheduler.queue_at_end(end_file(run, round, "sbatch").string(), jobs);
    const std::string number = job ? text_of(*job) : "unknown";
    write_file_atomically(end_file(run, round, "job"), number + "\n", Durable::yes);
    said(fmt::format("at the end: job {}", number));
  }
}

}  // namespace

BatchPlan plan_batch(const experiment::Experiment& experiment, const Site& site, const std::vector<Budget>& budgets,
                     std::int64_t array_size_max, const std::vector<std::int64_t>* only,
                     const std::map<std::int64_t, std::int64_t>& unfinished_before, bool with_canary) {
  const double capacity_s = std::chrono::duration<double>(site.capacity()).count();
  BatchPlan plan;
  std::set<std::int64_t> chosen;
  if (only) chosen.insert(only->begin(), only->end());
  std::vector<PackingInput> cases;
  for (std::size_t i = 0; i < experiment.cases.size(); ++i) {
    const experiment::Case& c = experiment.cases[i];
    if (only && !chosen.contains(c.index)) continue;
    if (budgets[i].seconds > capacity_s)
      throw SubmitError(
          fmt::format("case {} has a budget of {:.0f} s, and a job of the site has {:.0f} s for cases ([{}] time_max "
                      "less margin); lower [cluster] budget, or raise time_max",
                      c.index + 1, budgets[i].seconds, capacity_s, site.kind()));
    plan.cases_without_budget += budgets[i].source == Budget::Source::site ? 1 : 0;
    const auto before = unfinished_before.find(c.index);
    const Shape shape = shape_of(c, site.gpus_per_node);
    cases.push_back({shape, {c.index, budgets[i].seconds, before == unfinished_before.end() ? 0 : before->second}});
    plan.node_hours += static_cast<double>(shape.nodes) * budgets[i].seconds / 3600;
  }
  // A check of nodes asks which of them are good: the first one must not decide for the others.
  const bool is_of_nodes = std::any_of(cases.begin(), cases.end(), [](const auto& c) { return !c.shape.node.empty(); });
  plan.arrays = pack(cases, {capacity_s, array_size_max, site.canary && with_canary && !is_of_nodes,
                             site.limits.array_parallel, static_cast<std::int64_t>(hosts_of(site.target()).size())});
  return plan;
}

double job_limit_s(const PackedArray& array, const Site& site) {
  const double margin_s = std::chrono::duration<double>(site.limits.margin).count();
  const double time_max_s = std::chrono::duration<double>(site.time_max).count();
  return std::min(std::ceil((array.longest_s() + margin_s) / 60) * 60, time_max_s);
}

void write_round(const fs::path& run, Submission& submission, const BatchPlan& plan, const Site& site_as_it_is,
                 const fs::path& assay, const std::string& run_name) {
  Site site = site_as_it_is;
  for (const shard::UnhealthyNode& each : shard::unhealthy_nodes(batch_folder(run)))
    if (std::find(site.exclude.begin(), site.exclude.end(), each.node) == site.exclude.end())
      site.exclude.push_back(each.node);
  const std::int64_t round = submission.arrays.empty() ? 0 : submission.arrays.back().round + 1;
  create_folders(batch_folder(run) / "log");
  // A container may have another program; elsewhere it is a file that all see, or that hosts compare.
  const bool is_in_container = !site.container.image.empty() || site_kind(site).has_images;
  const std::string program_hash = is_in_container ? sha256_of_file(fs::read_symlink("/proc/self/exe")) : "";
  const std::size_t arrays_before = submission.arrays.size();
  for (const PackedArray& packed : plan.arrays) {
    SubmittedArray array;
    array.number = static_cast<std::int64_t>(submission.arrays.size());
    array.round = round, array.shape = packed.shape, array.is_canary = packed.is_canary;
    array.tasks = static_cast<std::int64_t>(packed.shards.size());
    array.limit_s = job_limit_s(packed, site);
    array.id = new_id();
    for (std::int64_t task = 0; task < array.tasks; ++task) {
      shard::ShardPlan shard;
      for (const PackedCase& c : packed.shards[static_cast<std::size_t>(task)].cases) {
        shard.cases.push_back(c.index);
        shard.budgets_s.push_back(c.budget_s);
        shard.unfinished_before.push_back(c.unfinished_before);
      }
      shard.experiment_file = submission.experiment_file, shard.experiment_hash = submission.experiment_hash;
      shard.plugin_file = submission.plugin_file, shard.plugin_hash = submission.plugin_hash;
      shard.is_canary = packed.is_canary;
      shard.promised = {site.asks_for_gpus(), array.id,    site.environment, cluster_of(site.target()),
                        site.health,          site.kind(), program_hash};
      const fs::path folder = array.shard_folder(run, task);
      make_folder(folder);
      shard::write_shard_plan(folder, shard);
    }
    write_file_atomically(array.script_file(run),
                          site_kind(site).script(script_input(site, array, submission, run_name, run, assay)));
    submission.arrays.push_back(std::move(array));
  }
  if (const auto end_script = site_kind(site).end_script; end_script && submission.arrays.size() > arrays_before)
    if (const std::string script =
            end_script(site, end_id(submission, round), run_name, fs::absolute(run).lexically_normal(), assay);
        !script.empty())
      write_file_atomically(end_file(run, round, "sbatch"), script);
  std::vector<fs::path> shards;
  for (std::size_t i = arrays_before; i < submission.arrays.size(); ++i)
    for (std::int64_t task = 0; task < submission.arrays[i].tasks; ++task)
      shards.push_back(submission.arrays[i].shard_folder(run, task));
  for_each_in_parallel(
      shards.size(), [&](std::size_t i) { shard::flush_shard_plan(shards[i]); }, Work::waiting);
  if (submission.arrays.size() > arrays_before) flush_folder(batch_folder(run) / "shards");
  const auto me = static_cast<std::int64_t>(::getuid());
  if (std::find(submission.users.begin(), submission.users.end(), me) == submission.users.end())
    submission.users.push_back(me);
  write_submission(run, submission);
}

std::optional<std::string> why_another_site(const Site& site, const Submission& submission) {
  const auto differs = [&](const std::string& of_site, const std::string& of_batch) {
    return fmt::format(
        "{} has {}, but the batch was submitted with {}; continue with a site that has it, or submit the experiment "
        "anew",
        site.file.string(), of_site, of_batch);
  };
  const std::string kind = site.kind(), kind_of_batch = name_of_kind(submission.target);
  if (kind != kind_of_batch)
    return differs(fmt::format("the kind [{}]", kind), fmt::format("the kind [{}]", kind_of_batch));
  if (const auto difference = site_kind(site).difference(site, submission.target))
    return differs(difference->of_site, difference->of_batch);
  return std::nullopt;
}

std::optional<std::string> why_no_host(const fs::path& run, const Submission& submission) {
  std::vector<std::string> names, files;
  const std::vector<std::string> hosts = hosts_of(submission.target);
  for (const SshHost& host : hosts.empty() ? std::vector<SshHost>{} : hosts_in(hosts, "hosts")) {
    if (!shard::is_unhealthy(batch_folder(run), host.name)) return std::nullopt;
    names.push_back(host.name);
    files.push_back((batch_folder(run) / "unhealthy" / file_name_of_host(host.name)).string());
  }
  if (names.empty()) return std::nullopt;
  return fmt::format(
      "no usable host is left: {} failed the health check (`assay status {}` says why); once a host is repaired, "
      "remove its file and it is checked again: {}",
      fmt::join(names, ", "), run.string(), fmt::join(files, ", "));
}

void queue_arrays(const fs::path& run, Submission& submission, const Scheduler& scheduler,
                  const std::function<void(const std::string&)>& said) {
  const auto is_open = [](const SubmittedArray& array) { return !array.job; };
  // A fresh submission has no job that could have been lost.
  std::vector<QueuedJob> queue;
  const bool is_fresh = std::none_of(submission.arrays.begin(), submission.arrays.end(),
                                     [](const SubmittedArray& array) { return array.job.has_value(); }) &&
                        !fs::exists(batch_folder(run) / "queued-before");
  if (!is_fresh) queue = scheduler.queue(submission.users);
  write_file_atomically(batch_folder(run) / "queued-before",
                        fmt::format("{} was asked to take this batch\n", site_kind(submission).shown), Durable::yes);
  std::map<std::int64_t, const SubmittedArray*> canaries;  // by round
  for (SubmittedArray& array : submission.arrays) {
    if (array.is_canary) canaries[array.round] = &array;
    if (!is_open(array)) continue;
    if (!is_fresh) {
      if (const auto job = job_by_comment(queue, array.id)) {
        set_job(run, array, *job);
        said(fmt::format("array {}: found as job {}", array.number, text_of(*job)));
        continue;
      }
      if (has_begun(run, array)) {
        // It ran, and has left the queue. The number of its array is not needed any more.
        set_job(run, array, {job_gone, ""});
        said(fmt::format("array {}: has run already", array.number));
        continue;
      }
    }
    std::optional<std::string> after_ok;
    const auto canary = canaries.find(array.round);
    if (canary != canaries.end() && canary->second != &array) {
      const auto said_of_canary = canary_state(run, *canary->second);
      if (said_of_canary == CanaryState::failed) {
        said(fmt::format("array {}: not queued, since the canary is not ok", array.number));
        continue;
      }
      if (said_of_canary == CanaryState::open && !is_fresh && !has_active_job(queue, *canary->second)) {
        said(fmt::format(
            "array {}: not queued, since the canary has left the queue without being ok; submit both again with "
            "--resubmit lost,quarantined,blocked",
            array.number));
        continue;
      }
      if (said_of_canary == CanaryState::open) after_ok = canary->second->job;
    }
    auto job = scheduler.queue_array(array.script_file(run).string(), after_ok);
    if (!job) job = job_by_comment(scheduler.queue(submission.users), array.id);
    if (!job)
      throw SchedulerError(
          fmt::format("{} has not answered with the number of one job, and none in the queue has the comment {}",
                      site_kind(submission).shown, comment_of(array.id)));
    set_job(run, array, *job);
    QueuedJob queued;
    queued.job = queued.array = job->number, queued.cluster = job->cluster;
    queued.state = "PENDING", queued.comment = comment_of(array.id);
    queue.push_back(std::move(queued));
    said(fmt::format("array {}: job {}, {} shard{} of {}, {:.0f} min each{}", array.number, text_of(*job), array.tasks,
                     array.tasks == 1 ? "" : "s", array.shape.text(), array.limit_s / 60,
                     array.is_canary ? "; the canary" : ""));
  }
  queue_ends(run, submission, scheduler, queue, said);
  scheduler.start_queued(said);
}

}  // namespace assay::host::batch
