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

std::vector<QueuedJob> ask_queue(const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"squeue", "--noheader", fmt::format("--format={}", queue_format)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  // Unless told otherwise squeue cuts long lists of tasks.
  return parse_queue(answer_of(arguments, {"SLURM_BITSTR_LEN=0"}));
}

}  // namespace

std::string Slurm::submit(const std::string& script, const std::vector<std::string>& options) const {
  std::vector<std::string> arguments{"sbatch", "--parsable"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back(script);
  const std::string out = answer_of(arguments);
  const auto job = parse_submitted(out);
  if (!job) throw SlurmError(fmt::format("sbatch answered '{}'; expected the number of a job", out));
  return *job;
}

std::optional<std::string> Slurm::why_refused(const std::vector<std::string>& options) const {
  std::vector<std::string> arguments{"sbatch", "--test-only"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back("--wrap=true");
  const CommandAnswer answer = run_command(arguments, patience);
  if (answer.exit_code == 127) fail("sbatch", answer);
  if (answer.is_good()) return std::nullopt;
  return answer.complaint();
}

std::vector<QueuedJob> Slurm::queue(const std::vector<std::int64_t>& users) const {
  std::string list = fmt::format("--user={}", ::getuid());
  for (const std::int64_t user : users)
    if (user != static_cast<std::int64_t>(::getuid())) list += fmt::format(",{}", user);
  return ask_queue({list});
}

bool Slurm::is_over(const std::string& job) const {
  if (job.empty()) return false;
  try {
    const std::vector<QueuedJob> jobs = ask_queue({});  // of all users: the attempt may be a colleague's
    return std::none_of(jobs.begin(), jobs.end(),
                        [&](const QueuedJob& each) { return each.job == job && each.is_active(); });
  } catch (const SlurmError&) {
    return false;
  }
}

void Slurm::cancel(const std::vector<std::string>& jobs) const {
  std::vector<std::string> arguments{"scancel"};
  arguments.insert(arguments.end(), jobs.begin(), jobs.end());
  answer_of(arguments);
}

std::vector<NodeState> Slurm::nodes(const std::string& partition) const {
  std::vector<std::string> arguments{"sinfo", "--noheader", "--Node", fmt::format("--format={}", nodes_format)};
  if (!partition.empty()) arguments.push_back("--partition=" + partition);
  return parse_nodes(answer_of(arguments));
}

std::int64_t Slurm::array_size_max() const {
  const std::string out = answer_of({"scontrol", "show", "config"});
  const auto text = parse_config_value(out, "MaxArraySize");
  const std::int64_t value = text ? std::strtoll(text->c_str(), nullptr, 10) : 0;
  // The highest index is one less; 0 says that there are no arrays, and one job each works all the same.
  return std::max<std::int64_t>(value, 1);
}

std::string Slurm::queue_array(const std::string& script, const std::optional<std::string>& after_ok) const {
  if (!after_ok) return submit(script, {});
  return submit(script, {"--dependency=afterok:" + *after_ok, "--kill-on-invalid-dep=yes"});
}

}  // namespace assay::host::batch
