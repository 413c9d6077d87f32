#include "batch/hosts_runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "batch/hosts_site.hpp"
#include "batch/site_kinds.hpp"
#include "batch/status.hpp"
#include "common/exit_code.hpp"
#include "common/fd.hpp"
#include "common/files.hpp"
#include "common/host_file_name.hpp"
#include "common/sha256.hpp"
#include "common/utc.hpp"
#include "hosts/host_check.hpp"
#include "hosts/host_connections.hpp"
#include "launch/signals.hpp"
#include "shard/attempt.hpp"
#include "shard/journal.hpp"
#include "shard/node_health.hpp"
#include "shard/node_ready.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto look = 200ms;
constexpr auto patience_with_others = 30s;  // runners of a group that have not started yet

void say(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
  std::fflush(stderr);
}

// The state of this host's runner, which others read, with a sign of life by a thread.
class Pulse {
 public:
  Pulse(fs::path run, std::string host, std::string launch) : run_(std::move(run)) {
    state_.host = std::move(host), state_.launch = std::move(launch), state_.pid = getpid();
    put("waiting", -1);
    thread_ = std::thread([this] {
      for (std::unique_lock lock(mutex_); !is_over_; over_.wait_for(lock, beat_, [this] { return is_over_; })) write();
    });
  }
  ~Pulse() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      state_.state = "ended";
      write();
    }
    over_.notify_all();
    thread_.join();
  }
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;
  void put(const std::string& state, std::int64_t array) {
    const std::lock_guard lock(mutex_);
    state_.state = state, state_.array = array;
    write();
  }

 private:
  void write() {
    state_.alive_s = seconds_since_1970();
    try {
      write_runner_state(run_, state_);
    } catch (const StorageError& e) {  // the next sign of life may come through
      say(e.what());
    }
  }

  const fs::path run_;
  const std::chrono::milliseconds beat_ = std::chrono::milliseconds(hosts::silence()) / 10;
  RunnerState state_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

class Runner {
 public:
  Runner(const fs::path& run, const std::string& host, const std::string& launch)
      : run_(run), host_(host), launch_(launch), turn_(opened_turn(host)), pulse_(run, host, launch) {}

  int run() {
    take_turn();
    for (std::size_t at = 0; !is_told_to_end(); ++at) {
      submission_ = read_submission(run_);  // a later round may have added arrays
      if (at >= submission_.arrays.size()) break;
      const SubmittedArray& array = submission_.arrays[at];
      if (!array.job || *array.job == job_gone) continue;
      hosts_ = hosts_in(hosts_of(submission_.target), "[ssh] hosts");
      const std::vector<std::string> group = group_of(array.shape, hosts_, host_);
      if (group.empty()) continue;
      pulse_.put("running", array.number);
      if (!may_start(array)) continue;
      // Not where it was found to be so on the way, either: others of the group look at the files, too.
      if (array.shape.node.empty() && has_unhealthy(group)) continue;
      if (group.front() == host_)
        lead(array, group);
      else
        follow(array, group.front());
    }
    return exit_ok;
  }

 private:
  bool is_told_to_end() const { return interrupts_.count()->load() > 0; }
  bool is_cancelled(const SubmittedArray& array) const { return batch::is_cancelled(run_, array); }
  // Nothing where the host's runner is gone.
  std::optional<RunnerState> living(const std::string& host) const {
    const auto state = read_runner_state(run_, host);
    return state && state->is_alive(seconds_since_1970()) ? state : std::nullopt;
  }

  // Opened before the first sign of life: `assay submit` reports a runner that gives none.
  static Fd opened_turn(const std::string& host) {
    const fs::path file = lock_of_machine(folder_of_locks("/tmp"), host);
    Fd fd(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) throw_storage_error("open", file, errno);
    return fd;
  }
  // A host runs one shard at a time, of whichever batch of this user.
  void take_turn() const {
    while (!is_told_to_end() && flock(turn_.get(), LOCK_EX | LOCK_NB) != 0) std::this_thread::sleep_for(look);
  }

  // Waits for the canary of its round.
  bool may_start(const SubmittedArray& array) const {
    if (array.is_canary) return true;
    for (const SubmittedArray& canary : submission_.arrays) {
      if (!canary.is_canary || canary.round != array.round) continue;
      for (auto give_up_at = std::chrono::steady_clock::now() + patience_with_others;;
           std::this_thread::sleep_for(look)) {
        const bool is_over = !line_of_file(ended_file(run_, canary.number, 0)).empty();
        const CanaryState state = canary_state(run_, canary);
        if (state == CanaryState::good) return true;
        if (state == CanaryState::failed || is_over || is_told_to_end() || is_cancelled(array)) return false;
        // Whoever has it is gone: nobody can say that it is good.
        const std::string holder = holder_of_task(run_, canary.number, 0);
        if (!holder.empty() && !living(holder)) return false;
        // One that was given back starts only where a host is left that may take it.
        const auto now = std::chrono::steady_clock::now();
        if (!holder.empty() || is_any_at_or_before(canary))
          give_up_at = now + patience_with_others;
        else if (now > give_up_at || !has_healthy_group(canary))
          return false;
      }
    }
    return true;
  }

  bool has_healthy_group(const SubmittedArray& array) const {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const SshHost& host) {
      const std::vector<std::string> group = group_of(array.shape, hosts_, host.name);
      return !group.empty() && !has_unhealthy(group);
    });
  }
  bool is_any_at_or_before(const SubmittedArray& array) const {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const SshHost& host) {
      const auto state = living(host.name);
      return state && state->array <= array.number;
    });
  }

  void lead(const SubmittedArray& array, const std::vector<std::string>& group) {
    for (const std::string& member : group) {
      auto give_up_at = std::chrono::steady_clock::now() + patience_with_others;
      for (; member != host_; std::this_thread::sleep_for(look)) {
        const auto state = living(member);
        if (state && state->array == array.number) break;
        if (is_told_to_end() || is_cancelled(array)) return;
        if (state) give_up_at = std::chrono::steady_clock::now() + patience_with_others;  // it is at an earlier array
        if (std::chrono::steady_clock::now() > give_up_at)
          return say(fmt::format("array {}: the runner of {} is gone, and its shards need it", array.number, member));
      }
    }
    // Again for shards that others give back, as long as a host that has one may do so.
    for (bool is_over = false; !is_over;) {
      for (std::int64_t task = 0; task < array.tasks; ++task) {
        if (is_told_to_end() || is_cancelled(array)) return;
        if (take(array, task) && !carry_out(array, task, group)) return;
      }
      is_over = true;
      if (array.tasks > 0 && array.shape.node.empty() && has_health_check(array))
        for (std::int64_t task = 0; task < array.tasks && is_over; ++task) is_over = !may_be_given_back(array, task);
      if (!is_over) std::this_thread::sleep_for(look);
    }
  }

  bool has_health_check(const SubmittedArray& array) const {
    return !shard::read_shard_plan(array.shard_folder(run_, 0)).promised.health.experiment.empty();
  }
  bool has_unhealthy(const std::vector<std::string>& group) const {
    return std::any_of(group.begin(), group.end(),
                       [this](const auto& each) { return shard::is_unhealthy(batch_folder(run_), each); });
  }
  bool may_be_given_back(const SubmittedArray& array, std::int64_t task) const {
    if (!line_of_file(ended_file(run_, array.number, task)).empty()) return false;
    const std::string holder = holder_of_task(run_, array.number, task);
    if (holder.empty()) return true;
    if (!living(holder)) return false;
    // Each node is checked once in a batch.
    const std::vector<std::string> group = group_of(array.shape, hosts_, holder);
    return std::any_of(group.begin(), group.end(), [this](const std::string& host) {
      const auto health = shard::read_node_health(batch_folder(run_), host);
      return !health || !health->is_healthy();
    });
  }

  // The leader runs ranks here, by ssh, as long as it is at this array.
  void follow(const SubmittedArray& array, const std::string& leader) const {
    const auto give_up_at = std::chrono::steady_clock::now() + patience_with_others;
    for (bool is_seen = false; !is_told_to_end(); std::this_thread::sleep_for(look)) {
      const auto state = read_runner_state(run_, leader);
      const bool is_here = state && state->is_alive(seconds_since_1970());
      is_seen = is_seen || is_here;
      const bool is_past = is_here && state->array > array.number;
      const bool has_ended = state && state->state == "ended" && state->launch == launch_;
      if (is_past || has_ended || (!is_here && (is_seen || std::chrono::steady_clock::now() > give_up_at))) return;
    }
  }

  // One that this host has taken before, and not ended, is of a runner that was killed.
  bool take(const SubmittedArray& array, std::int64_t task) const {
    if (!line_of_file(ended_file(run_, array.number, task)).empty()) return false;
    return claim_task(run_, array.number, task, host_);
  }

  // Whether the group can go on with other shards: not where a host of it fails the site's health check. The shard is
  // then free for other groups, unless it is bound to these hosts or has had its attempts.
  bool carry_out(const SubmittedArray& array, std::int64_t task, const std::vector<std::string>& group) {
    const fs::path shard = array.shard_folder(run_, task);
    const auto given_back = static_cast<std::int64_t>(shard::unready_starts(shard).size());
    auto restart = static_cast<std::int64_t>(shard::read_attempts(shard).size()) + given_back;
    std::string word;
    bool is_healthy = true;
    for (std::int64_t start = 0; start < submission_.attempts; ++start, ++restart) {
      const shard::JobStart job{fmt::format("{}_{}", *array.job, task), restart};
      const std::optional<int> code = run_script(array, task, group, job);
      is_healthy = code != exit_unhealthy;
      if (!is_healthy && array.shape.node.empty() && given_back + 1 < submission_.attempts) {
        say(fmt::format("shard {}-{:04}: given back, since a node fails the health check", array.number, task));
        give_back_task(run_, array.number, task, host_);
        return false;
      }
      word = is_healthy ? line_of_file(shard::verdict_file(shard, job)) : "unhealthy";
      if (!code) word = "stopped";
      if (!word.empty() && word != "more") break;
    }
    write_file_atomically(ended_file(run_, array.number, task), (word.empty() ? "killed" : word) + "\n", Durable::yes);
    say(fmt::format("shard {}-{:04}: {}", array.number, task, word.empty() ? "killed" : word));
    return is_healthy;
  }

  // Nothing where it was told to stop; else its exit code, or minus a signal.
  std::optional<int> run_script(const SubmittedArray& array, std::int64_t task, const std::vector<std::string>& group,
                                const shard::JobStart& job) {
    std::string hosts;
    for (const std::string& name : group) hosts += fmt::format("{} slots={}\n", name, array.shape.ranks_per_node);
    const fs::path hosts_file = hosts_folder(run_) / fmt::format("group-{}-{}", array.number, task);
    if (group.size() > 1) write_file_atomically(hosts_file, hosts, Durable::yes);
    const fs::path log = batch_folder(run_) / "log" / (job.job + ".log");
    std::string bash = "bash", script = array.script_file(run_).string();
    const std::array<char*, 3> arguments{bash.data(), script.data(), nullptr};
    const std::vector<std::pair<const char*, std::string>> variables{
        {"ASSAY_JOB_KIND", HostsSettings::kind.name},
        {"ASSAY_JOB_ID", job.job},
        {"ASSAY_JOB_RESTART", std::to_string(job.restart)},
        {"ASSAY_JOB_TASK", std::to_string(task)},
        {"ASSAY_JOB_NODES", fmt::format("{}", fmt::join(group, ","))},
        {"ASSAY_JOB_NODE", host_},
        {"ASSAY_JOB_HOSTS", hosts_file.string()}};
    std::vector<std::string> entries;
    for (char** entry = environ; *entry; ++entry) {
      const std::string_view text = *entry;
      const std::string_view its_name = text.substr(0, text.find('='));
      if (std::none_of(variables.begin(), variables.end(), [&](const auto& each) { return each.first == its_name; }))
        entries.emplace_back(text);
    }
    for (const auto& [name, value] : variables) entries.push_back(fmt::format("{}={}", name, value));
    std::vector<char*> environment;
    for (std::string& entry : entries) environment.push_back(entry.data());
    environment.push_back(nullptr);
    const Fd out(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!out) throw_storage_error("open", log, errno);
    const pid_t runner = getpid(), pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "cannot start a shard");
    if (pid == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // its workers end with it
      if (getppid() != runner) _exit(1);
      for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
      dup2(out.get(), STDOUT_FILENO);
      dup2(out.get(), STDERR_FILENO);
      execvpe("bash", arguments.data(), environment.data());
      _exit(127);
    }
    std::optional<std::chrono::steady_clock::time_point> stopped;
    int status = 0;
    for (; waitpid(pid, &status, WNOHANG) != pid; std::this_thread::sleep_for(50ms)) {
      if (!stopped && (is_told_to_end() || is_cancelled(array))) {
        stopped = std::chrono::steady_clock::now();
        kill(-pid, SIGTERM);
      }
      if (stopped && std::chrono::steady_clock::now() - *stopped > grace_of_shard) kill(-pid, SIGKILL);
    }
    if (stopped) return std::nullopt;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const fs::path run_;
  const std::string host_, launch_;
  const Fd turn_;
  launch::InterruptHandler interrupts_;
  Pulse pulse_;
  Submission submission_;
  std::vector<SshHost> hosts_;
};

}  // namespace

fs::path folder_of_locks(const fs::path& tmp) {
  // XDG_RUNTIME_DIR would go with the login session, which a runner outlives.
  const fs::path folder = tmp / fmt::format("assay-{}", getuid());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) throw_storage_error("create", folder, errno);
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0) throw_storage_error("examine", folder, errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != getuid() || (found.st_mode & 077) != 0)
    throw SchedulerError(
        fmt::format("{} is not a folder of this user alone: another user may have made it; "
                    "remove it, or make it yours with mode 0700",
                    folder.string()));
  return folder;
}

fs::path lock_of_machine(const fs::path& folder, const std::string& host) {
  std::string name = hosts::machine_id();
  if (name.empty()) name = host;
  return folder / fmt::format("runner-{}.lock", file_name_of_host(name));
}

int run_shards_of_host(const fs::path& run, const std::string& host, const std::string& launch) {
  // One runner of a batch on a host; `assay submit RUN` starts another where it is not known to live.
  if (const auto state = read_runner_state(run, host);
      state && state->is_alive(seconds_since_1970()) && ::kill(static_cast<pid_t>(state->pid), 0) == 0)
    return exit_ok;
  return Runner(run, host, launch).run();
}

}  // namespace assay::host::batch
