// The few questions that assay asks Slurm, each by one call of one of its programs.
#pragma once
#include "batch/scheduler.hpp"
#include "batch/slurm_answers.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::host::batch {

// Slurm is not there, or does not do what was asked. The text names the program and what it said.
class SlurmError : public SchedulerError {
 public:
  using SchedulerError::SchedulerError;
};

class Slurm : public Scheduler {
 public:
  // Submits the script and returns the job's id. `options` come before the script. Throws SlurmError; the job may have
  // been taken all the same when the answer was lost.
  std::string submit(const std::string& script, const std::vector<std::string>& options) const;
  std::string queue_array(const std::string& script, const std::optional<std::string>& after_ok) const override;
  // Why Slurm would not take a job with these options; nothing when it would.
  std::optional<std::string> why_refused(const std::vector<std::string>& options) const;
  // The jobs of this user and of `users`, user ids: one call of squeue. Throws SlurmError.
  std::vector<QueuedJob> queue(const std::vector<std::int64_t>& users = {}) const override;
  // Whether the job is known to be over; false when nobody can say.
  bool is_over(const std::string& job) const;
  void cancel(const std::vector<std::string>& jobs) const override;           // throws SlurmError
  std::vector<NodeState> nodes(const std::string& partition) const override;  // "": of all; throws SlurmError
  std::int64_t array_size_max() const override;                               // jobs in one array; throws SlurmError
};

}  // namespace assay::host::batch
