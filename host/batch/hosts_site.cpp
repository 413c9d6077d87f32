#include "batch/hosts_site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "batch/container.hpp"
#include "batch/container_image.hpp"
#include "batch/site_kinds.hpp"
#include "batch/status.hpp"
#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/host_file_name.hpp"
#include "common/utc.hpp"
#include "hosts/host_connections.hpp"
#include "hosts/host_launch.hpp"
#include "shard/journal.hpp"
#include "shard/node_health.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

constexpr auto patience_with_keepers = 5s;  // that were told to end
constexpr auto patience_with_runner = 20s;  // until it has given its first sign of life

fs::path log_of_runner(const fs::path& run, const std::string& host) {
  return batch_folder(run) / "log" / fmt::format("host-{}.log", file_name_of_host(host));
}

fs::path state_file(const fs::path& run, const std::string& host) {
  return hosts_folder(run) / (file_name_of_host(host) + ".json");
}

bool has_file(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

}  // namespace

fs::path hosts_folder(const fs::path& run) { return batch_folder(run) / "hosts"; }
fs::path claim_file(const fs::path& run, std::int64_t array, std::int64_t task) {
  return hosts_folder(run) / fmt::format("claim-{}-{}", array, task);
}
fs::path ended_file(const fs::path& run, std::int64_t array, std::int64_t task) {
  return hosts_folder(run) / fmt::format("ended-{}-{}", array, task);
}

std::string line_of_file(const fs::path& file) {
  if (!has_file(file)) return "";
  std::string text = read_regular_file(file);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string holder_of_task(const fs::path& run, std::int64_t array, std::int64_t task) {
  const fs::path file = claim_file(run, array, task);
  const std::string text = has_file(file) ? read_regular_file(file) : "";
  return text.ends_with('\n') ? text.substr(0, text.size() - 1) : "";
}

bool claim_task(const fs::path& run, std::int64_t array, std::int64_t task, const std::string& host) {
  const fs::path file = claim_file(run, array, task), again = file.string() + "-again",
                 mine = hosts_folder(run) / ("claiming-" + new_id());
  // A link appears whole or not at all, and one host alone makes it.
  const auto link_to = [&](const fs::path& place) {
    write_file_atomically(mine, host + "\n", Durable::yes);
    const int error = ::link(mine.c_str(), place.c_str()) == 0 ? 0 : errno;
    std::error_code ignored;
    fs::remove(mine, ignored);
    if (error != 0 && error != EEXIST) throw_storage_error("create", place, error);
    return read_regular_file(place) == host + "\n";
  };
  if (link_to(file)) return true;
  if (!holder_of_task(run, array, task).empty()) return false;
  // Nobody writes it any more once it is older than silence, or has a date that no right clock gave it: whoever gets
  // the second link replaces it.
  std::error_code ignored;
  const auto written = fs::last_write_time(file, ignored);
  if (ignored || std::chrono::abs(fs::file_time_type::clock::now() - written) < hosts::silence() || !link_to(again))
    return false;
  write_file_atomically(file, host + "\n", Durable::yes);
  return true;
}

void give_back_task(const fs::path& run, std::int64_t array, std::int64_t task, const std::string& host) {
  if (holder_of_task(run, array, task) != host) return;
  std::error_code ignored;
  const fs::path file = claim_file(run, array, task);
  fs::remove(file.string() + "-again", ignored);
  fs::remove(file, ignored);
}

bool RunnerState::is_alive(double now_s) const {
  // A host whose clock was wrong would otherwise live until that date.
  return state != "ended" && std::abs(now_s - alive_s) < static_cast<double>(hosts::silence().count());
}

void write_runner_state(const fs::path& run, const RunnerState& state) {
  const Json json{{"host", state.host}, {"state", state.state},   {"array", state.array},
                  {"pid", state.pid},   {"launch", state.launch}, {"alive_s", state.alive_s}};
  write_file_atomically(state_file(run, state.host), json.dump() + "\n");
}

std::optional<RunnerState> read_runner_state(const fs::path& run, const std::string& host) {
  const Json json = Json::parse(line_of_file(state_file(run, host)), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return RunnerState{json.value("host", ""),
                     json.value("state", ""),
                     json.value("array", std::int64_t{-1}),
                     json.value("pid", std::int64_t{0}),
                     json.value("launch", ""),
                     json.value("alive_s", 0.0)};
}

std::vector<std::string> group_of(const Shape& shape, const std::vector<SshHost>& hosts, const std::string& host) {
  std::vector<std::string> group = names_of_nodes(shape.node);
  if (!shape.node.empty())
    return std::find(group.begin(), group.end(), host) == group.end() ? std::vector<std::string>{} : group;
  const auto size = static_cast<std::size_t>(shape.nodes);
  const auto at = std::find_if(hosts.begin(), hosts.end(), [&](const SshHost& each) { return each.name == host; });
  const std::size_t begin = static_cast<std::size_t>(at - hosts.begin()) / size * size;
  if (at == hosts.end() || begin + size > hosts.size()) return {};
  for (std::size_t i = 0; i < size; ++i) group.push_back(hosts[begin + i].name);
  return group;
}

HostsScheduler::HostsScheduler(Submission submission, fs::path run)
    : submission_(std::move(submission)),
      run_(std::move(run)),
      hosts_(hosts_in(hosts_of(submission_.target), "[ssh] hosts")) {}

std::optional<SubmittedJob> HostsScheduler::queue_array(const std::string&, const std::optional<std::string>&) const {
  create_folders(hosts_folder(run_));
  return SubmittedJob{job_on_hosts + new_id().substr(0, 8), ""};  // runners know the canary themselves
}

void HostsScheduler::start_queued(const std::function<void(const std::string&)>& said) const {
  create_folders(hosts_folder(run_));
  const bool needs_all = std::any_of(submission_.arrays.begin(), submission_.arrays.end(), [](const auto& array) {
    return array.shape.nodes > 1 || !array.shape.node.empty();
  });
  const fs::path program = fs::read_symlink("/proc/self/exe");
  hosts::HostCheck check =
      hosts::check_of({run_ / "experiment.toml", fs::path(submission_.plugin_file)}, run_, hosts_folder(run_));
  check.list = "[ssh] hosts";
  try {
    hosts::HostConnections connections(hosts_, program, nullptr);
    std::vector<std::vector<std::string>> problems = connections.problems(check);
    const auto good =
        std::count_if(problems.begin(), problems.end(), [](const auto& of_host) { return of_host.empty(); });
    if (good == 0 || needs_all) hosts::throw_problems(problems);
    for (const auto& of_host : problems)
      for (const std::string& problem : of_host) said(fmt::format("note: {}; its shards go to other hosts", problem));
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (problems[i].empty() && shard::is_unhealthy(batch_folder(run_), hosts_[i].name)) {
        problems[i].push_back(hosts_[i].name + " fails the site's health check");
        if (!needs_all) said(fmt::format("note: {}; its shards go to other hosts", problems[i].back()));
      }
    if (std::none_of(problems.begin(), problems.end(), [](const auto& of_host) { return of_host.empty(); }))
      hosts::throw_problems(problems);
    const std::string launch = new_id();
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (problems[i].empty())
        connections.send(i, {{"do", "detach"},
                             {"folder", run_.string()},
                             {"environment", hosts::passed_environment()},
                             {"arguments", {"batch-runner", run_.string(), hosts_[i].name, launch}},
                             {"log", log_of_runner(run_, hosts_[i].name).string()}});
    std::set<std::size_t> open;
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (problems[i].empty()) open.insert(i);
    for (const auto deadline = std::chrono::steady_clock::now() + patience_with_runner; !open.empty();) {
      connections.next(50ms);
      std::erase_if(open, [&](std::size_t i) {
        const auto state = read_runner_state(run_, hosts_[i].name);
        return state && (state->launch == launch || state->is_alive(seconds_since_1970()));
      });
      if (std::chrono::steady_clock::now() > deadline)
        throw SchedulerError(fmt::format("{}: the runner of shards has not started; see {}", hosts_[*open.begin()].name,
                                         log_of_runner(run_, hosts_[*open.begin()].name).string()));
    }
    connections.send_to_all({{"do", "end"}});
  } catch (const hosts::HostError& e) {
    throw SchedulerError(e.what());
  }
}

std::vector<QueuedJob> HostsScheduler::queue(const std::vector<std::int64_t>&) const try {
  const double now_s = seconds_since_1970();
  std::vector<RunnerState> alive;
  bool is_waiting = true;
  for (const SshHost& host : hosts_)
    if (const auto state = read_runner_state(run_, host.name); state && state->is_alive(now_s)) {
      alive.push_back(*state);
      is_waiting = is_waiting && state->state == "waiting";
    }
  std::vector<QueuedJob> jobs;
  for (const SubmittedArray& array : submission_.arrays) {
    if (!array.job) continue;
    QueuedJob pending;
    pending.job = pending.array = *array.job, pending.state = "PENDING", pending.comment = comment_of(array.id);
    const bool waits_for_canary =
        !array.is_canary &&
        std::any_of(submission_.arrays.begin(), submission_.arrays.end(), [&](const SubmittedArray& each) {
          return each.is_canary && each.round == array.round && canary_state(run_, each) != CanaryState::good;
        });
    pending.reason = is_waiting         ? "another batch runs on its hosts"
                     : waits_for_canary ? "it waits for the canary"
                                        : "its hosts are busy";
    for (std::int64_t task = 0; task < array.tasks; ++task) {
      const std::string host = holder_of_task(run_, array.number, task);
      if (host.empty()) {
        pending.tasks.emplace_back(task, task);
        continue;
      }
      if (has_file(ended_file(run_, array.number, task))) continue;
      if (std::none_of(alive.begin(), alive.end(), [&](const auto& each) { return each.host == host; })) continue;
      QueuedJob running = pending;
      running.job = fmt::format("{}_{}", *array.job, task);
      running.tasks = {{task, task}}, running.state = "RUNNING", running.nodes = host, running.reason = "";
      jobs.push_back(std::move(running));
    }
    const bool can_start = std::any_of(alive.begin(), alive.end(), [&](const RunnerState& each) {
      return each.array <= array.number && !group_of(array.shape, hosts_, each.host).empty();
    });
    if (!pending.tasks.empty() && can_start && !is_cancelled(run_, array)) jobs.push_back(std::move(pending));
  }
  return jobs;
} catch (const StorageError& e) {
  throw SchedulerError(e.what());
}

void HostsScheduler::cancel(const std::vector<SubmittedJob>& arrays) const {
  for (const SubmittedArray& array : submission_.arrays)
    if (std::any_of(arrays.begin(), arrays.end(), [&](const SubmittedJob& job) { return array.job == job.number; }))
      mark_cancelled(run_, array);
  // Runners see the files, give their shard its grace, and then note its end.
  constexpr auto patience = grace_of_shard + 10s;
  for (const auto deadline = std::chrono::steady_clock::now() + patience;
       std::chrono::steady_clock::now() < deadline;) {
    const auto jobs = queue();
    if (std::none_of(jobs.begin(), jobs.end(), [&](const QueuedJob& job) {
          return std::any_of(arrays.begin(), arrays.end(),
                             [&](const SubmittedJob& array) { return array.number == job.array; });
        }))
      return;
    std::this_thread::sleep_for(100ms);
  }
  throw SchedulerError(fmt::format("not all runners have confirmed within {} s; `assay status` shows which tasks go on",
                                   patience.count()));
}

std::int64_t HostsScheduler::array_size_max() const { return 1'000'000; }  // an array is a list of files

std::string hosts_script(const ScriptInput& input) {
  check_run_path(input.run);
  check_run_path(program_of(input));
  if (input.array.shape.nodes > 1 && !input.site.container.image.empty())
    throw SiteError(
        "a case wants several hosts, and [ssh] container has each case in a container of one host; run it "
        "without a container, or on a site of Slurm");
  const auto margin_s = static_cast<std::int64_t>(input.site.limits.margin.count() / 1000);
  std::string text = "#!/bin/bash\n";
  text +=
      "# A shard of an assay batch on hosts of ssh: docs/cluster.md of assay. The runner of a host (assay "
      "batch-runner) "
      "sets\n# ASSAY_JOB_TASK, and for several hosts ASSAY_JOB_HOSTS. Files in S say what is done; starting it again "
      "is "
      "harmless.\n";
  text +=
      fmt::format("S={}/batch/shards/{}-$(printf %04d \"$ASSAY_JOB_TASK\")\n", input.run.string(), input.array.number);
  text += fmt::format("END=$(($(date +%s) + {:.0f}))\n",
                      input.array.limit_s - std::max<double>(static_cast<double>(margin_s) / 5, 1));
  text += fmt::format("export ASSAY_BATCH={}\n", input.array.id);
  text += unready_text("$ASSAY_JOB_ID-$ASSAY_JOB_RESTART", 1) + prologue_text(input.site);
  const std::string assay_run =
      fmt::format("{}{} run {}/experiment.toml --shard \"$S\"{}", container_words(input), program_of(input).string(),
                  input.run.string(), input.array.shape.nodes > 1 ? " --hosts \"$ASSAY_JOB_HOSTS\"" : "");
  // The runner gives the shard back to other hosts.
  text += node_ready_text(assay_run, unhealthy_text(exit_unhealthy));
  text += fmt::format("exec {} --until \"$END\"\n", assay_run);
  return text;
}

SiteFindings check_hosts(const Site& site, const std::vector<Shape>& shapes, const CheckedRuns& runs) {
  SiteFindings findings;
  const std::vector<std::string>& hosts = std::get<HostsSettings>(site.settings).hosts;
  std::vector<std::string>& problems = findings.problems;
  const auto image_file = file_of_image(site.container);
  if (!image_file) {
    add_image(look_for_image(site.container, site.kind()), findings);
  } else if (image_file->is_relative()) {
    problems.push_back(
        fmt::format("[ssh.container] image is '{}'; expected a path from /, since a case works in its run's "
                    "folder",
                    site.container.image));
  }
  for (const Shape& shape : shapes)
    if (shape.nodes > static_cast<std::int64_t>(hosts.size()))
      problems.push_back(fmt::format("a case wants {} hosts, and [ssh] hosts has {}", shape.nodes, hosts.size()));
  try {
    // Without an experiment: whether the hosts share this folder.
    for (const fs::path& each : runs.results.empty() ? std::vector<fs::path>{"."} : runs.results) {
      const fs::path results = fs::absolute(each).lexically_normal();
      fs::path there = results;  // already
      while (!is_folder(there)) there = there.parent_path();
      hosts::HostConnections connections(hosts_in(hosts, "[ssh] hosts"), fs::read_symlink("/proc/self/exe"), nullptr);
      hosts::HostCheck check = hosts::check_of(runs.plugins, there, results);
      check.list = "[ssh] hosts";
      if (image_file && image_file->is_absolute()) check.present = {*image_file};
      for (auto& of_host : connections.problems(check)) problems.insert(problems.end(), of_host.begin(), of_host.end());
      connections.send_to_all({{"do", "end"}});
      // A keeper removes the file of the check as it ends.
      for (const auto deadline = std::chrono::steady_clock::now() + patience_with_keepers;
           !connections.are_all_closed() && std::chrono::steady_clock::now() < deadline;)
        connections.next(50ms);
      std::error_code ignored;
      for (fs::path made = results; made != there; made = made.parent_path()) fs::remove(made, ignored);
    }
  } catch (const hosts::HostError& e) {
    problems.emplace_back(e.what());
  }
  return findings;
}

}  // namespace assay::host::batch
