// What a batch asks of whatever starts its jobs. Each kind of site (site_kinds.hpp) has one.
#pragma once
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch/slurm_answers.hpp"

namespace assay::host::batch {

// The scheduler is not there, or does not do what was asked. The text names it and what it said.
class SchedulerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// All throw SchedulerError.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Queues the array of jobs that the script describes, and returns its number; nothing when the answer has none that
  // is clear: the jobs' comment then finds it in the queue. `after_ok`: the number of an array that must end well
  // before the first of these jobs starts. The array may have been taken all the same when this throws.
  virtual std::optional<SubmittedJob> queue_array(const std::string& script,
                                                  const std::optional<std::string>& after_ok) const = 0;
  // Called once all arrays of a submission have their numbers on the disk, and again whenever the submission is gone on
  // with: a kind of site whose jobs start by themselves has nothing to do here.
  virtual void start_queued() const {}
  // The jobs that wait or run, of this user and of `users`, user ids.
  virtual std::vector<QueuedJob> queue(const std::vector<std::int64_t>& users = {}) const = 0;
  virtual void cancel(const std::vector<std::string>& arrays) const = 0;
  virtual std::vector<NodeState> nodes(const std::string& partition) const = 0;  // "": of all
  virtual std::int64_t array_size_max() const = 0;                               // jobs in one array
};

}  // namespace assay::host::batch
