#include "batch/slurm.hpp"

#include "common/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace assay::host::batch {
namespace {

using namespace std::chrono_literals;

// A controller that is busy answers late; one that is gone makes its programs try again for a while.
constexpr std::chrono::milliseconds patience = 60s;

[[noreturn]] void fail(const std::string& program, const CommandAnswer& answer) {
  if (answer.exit_code == 127)
    throw SlurmError(fmt::format(
        "there is no program '{}' here; run this on a machine of the Slurm cluster (a login node)", program));
  throw SlurmError(fmt::format("{} failed: {}", program, answer.complaint()));
}

std::string answer_of(const std::vector<std::string>& arguments, const std::vector<std::string>& more = {}) {
  const CommandAnswer answer = run_command(arguments, patience, more);
  if (!answer.is_good()) fail(arguments.front(), answer);
  return answer.out;
}

}  // namespace

std::vector<std::string> Slurm::command(const std::string& program,
                                        std::initializer_list<std::string> arguments) const {
  std::vector<std::string> all{program};
  if (!cluster_.empty()) all.push_back("--clusters=" + cluster_);
  all.insert(all.end(), arguments);
  return all;
}

std::vector<QueuedJob> Slurm::ask_queue(const std::string& option) const {
  std::vector<std::string> arguments = command("squeue", {"--noheader", fmt::format("--format={}", queue_format)});
  if (!option.empty()) arguments.push_back(option);
  // By default squeue cuts long lists of tasks.
  std::vector<QueuedJob> jobs = parse_queue(answer_of(arguments, {"SLURM_BITSTR_LEN=0"}));
  for (QueuedJob& job : jobs) job.cluster = cluster_;
  return jobs;
}

std::optional<SubmittedJob> Slurm::submit(const std::string& script, const std::vector<std::string>& options) const {
  std::vector<std::string> arguments = command("sbatch", {"--parsable"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back(script);
  std::optional<SubmittedJob> job = parse_submitted(answer_of(arguments));
  if (job && job->cluster.empty()) job->cluster = cluster_;
  return job;
}

std::optional<std::string> Slurm::why_refused(const std::vector<std::string>& options) const {
  std::vector<std::string> arguments = command("sbatch", {"--test-only"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back("--wrap=true");
  const CommandAnswer answer = run_command(arguments, patience);
  if (answer.exit_code == 127) fail("sbatch", answer);
  if (answer.is_good()) return std::nullopt;
  return answer.complaint();
}

std::optional<std::string> Slurm::why_srun_refused(const std::vector<std::string>& options) const {
  std::vector<std::string> arguments = command("srun", {"--test-only", "--nodes=1", "--ntasks=1", "--time=1"});
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("true");
  const CommandAnswer answer = run_command(arguments, patience);
  if (answer.exit_code == 127) fail("srun", answer);
  if (answer.is_good()) return std::nullopt;
  return answer.complaint();
}

std::map<std::string, std::string> Slurm::partition_states() const {
  return parse_partition_states(answer_of(command("sinfo", {"--noheader", "--format=%P|%a"})));
}

std::optional<std::int64_t> Slurm::longest_of_qos_s(const std::string& qos) const {
  // Whether there are accounts at all is not said anywhere else.
  const CommandAnswer answer =
      run_command({"sacctmgr", "--noheader", "--parsable2", "show", "qos", qos, "format=MaxWall"}, patience);
  if (!answer.is_good()) return std::nullopt;
  return parse_time_limit_s(answer.out.substr(0, answer.out.find('\n')));
}

std::vector<QueuedJob> Slurm::queue(const std::vector<std::int64_t>& users) const {
  std::string list = fmt::format("--user={}", ::getuid());
  for (const std::int64_t user : users)
    if (user != static_cast<std::int64_t>(::getuid())) list += fmt::format(",{}", user);
  return ask_queue(list);
}

bool Slurm::is_over(const std::string& job) const {
  if (job.empty()) return false;
  try {
    const std::vector<QueuedJob> jobs = ask_queue("");  // of all users: the attempt may be a colleague's
    return std::none_of(jobs.begin(), jobs.end(),
                        [&](const QueuedJob& each) { return each.job == job && each.is_active(); });
  } catch (const SlurmError&) {
    return false;
  }
}

std::string Slurm::how_ended(const std::string& job) const try {
  return parse_end_of_job(answer_of(command("scontrol", {"--oneliner", "show", "job", job})));
} catch (const SlurmError&) {
  return "";
}

void Slurm::cancel(const std::vector<std::string>& jobs) const {
  std::vector<std::string> arguments = command("scancel");
  arguments.insert(arguments.end(), jobs.begin(), jobs.end());
  answer_of(arguments);
}

std::vector<NodeState> Slurm::nodes(const std::string& partition) const {
  std::vector<std::string> arguments =
      command("sinfo", {"--noheader", "--Node", fmt::format("--format={}", nodes_format)});
  if (!partition.empty()) arguments.push_back("--partition=" + partition);
  return parse_nodes(answer_of(arguments));
}

std::int64_t Slurm::array_size_max() const {
  const std::string out = answer_of(command("scontrol", {"show", "config"}));
  const auto text = parse_config_value(out, "MaxArraySize");
  const std::int64_t value = text ? std::strtoll(text->c_str(), nullptr, 10) : 0;
  // The highest index is one less; 0 says that there are no arrays, and one job each works all the same.
  return std::max<std::int64_t>(value, 1);
}

}  // namespace assay::host::batch
