// The few questions that assay asks Slurm, each by one call of one of its programs.
#pragma once
#include "batch/scheduler.hpp"
#include "batch/slurm_answers.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace assay::host::batch {

// Slurm is not there, or does not do what was asked. The text names the program and what it said.
class SlurmError : public SchedulerError {
 public:
  using SchedulerError::SchedulerError;
};

class Slurm {
 public:
  // `cluster`: of several that this one knows (--clusters); "": the one of this machine.
  explicit Slurm(std::string cluster = "") : cluster_(std::move(cluster)) {}

  // Submits the script and returns the job's id, or nothing when the answer has none that is clear: the job's comment
  // then finds it in the queue. `options` come before the script. Throws SlurmError; the job may have been taken all
  // the same when the answer was lost.
  std::optional<SubmittedJob> submit(const std::string& script, const std::vector<std::string>& options) const;
  // Why Slurm would not take a job with these options; nothing when it would.
  std::optional<std::string> why_refused(const std::vector<std::string>& options) const;
  // The same of options of srun.
  std::optional<std::string> why_srun_refused(const std::vector<std::string>& options) const;
  // "up", "down", "drain", "inact" of each partition, by name. Throws SlurmError.
  std::map<std::string, std::string> partition_states() const;
  // The longest job that a quality of service lets run; nothing where it says none, or nobody keeps accounts.
  std::optional<std::int64_t> longest_of_qos_s(const std::string& qos) const;
  // The jobs of this user and of `users`, user ids: one call of squeue. Throws SlurmError.
  std::vector<QueuedJob> queue(const std::vector<std::int64_t>& users = {}) const;
  // Whether the job is known to be over; false when nobody can say.
  bool is_over(const std::string& job) const;
  // How a job that has left the queue ended, while Slurm still knows: "FAILED, exit code 0:53, on n1". "" when nobody
  // can say.
  std::string how_ended(const std::string& job) const;
  void cancel(const std::vector<std::string>& jobs) const;           // throws SlurmError
  std::vector<NodeState> nodes(const std::string& partition) const;  // "": of all; throws SlurmError
  std::int64_t array_size_max() const;                               // jobs in one array; throws SlurmError

 private:
  std::vector<std::string> command(const std::string& program, std::initializer_list<std::string> arguments = {}) const;
  std::vector<QueuedJob> ask_queue(const std::string& option) const;

  std::string cluster_;
};

}  // namespace assay::host::batch
