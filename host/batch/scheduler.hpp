// What a batch asks of whatever starts its jobs. Each kind of site (site_kinds.hpp) has one.
#pragma once
#include <cstdint>
#include <functional>
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

// All throw SchedulerError; those that queue, start and cancel StorageError, too, where the site keeps files of a run.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Queues the array of jobs that the script describes. Returns its number, or nothing when the answer has none that is
  // clear: the array's comment then finds it in the queue. `after_ok`: the number of an array that must end well before
  // the first of these jobs starts. The array may have been taken all the same when this throws.
  virtual std::optional<SubmittedJob> queue_array(const std::string& script,
                                                  const std::optional<std::string>& after_ok) const = 0;
  // Queues a job that starts once the `arrays` have ended in whatever way. Only kinds of sites with `on_end` have it.
  virtual std::optional<SubmittedJob> queue_at_end(const std::string& script,
                                                   const std::vector<std::string>& arrays) const {
    throw SchedulerError("this kind of site has no job after the " + std::to_string(arrays.size()) + " arrays (" +
                         script + ")");
  }
  // Called once all arrays of a submission have their numbers on the disk, and again whenever the submission is gone on
  // with: a kind of site whose jobs start by themselves has nothing to do here.
  // `said` hears a line for each part of the site that is left out.
  virtual void start_queued(const std::function<void(const std::string&)>& said) const { static_cast<void>(said); }
  // The jobs that wait or run, of this user and of `users`, user ids.
  virtual std::vector<QueuedJob> queue(const std::vector<std::int64_t>& users = {}) const = 0;
  virtual void cancel(const std::vector<SubmittedJob>& arrays) const = 0;
  // How a job that has left the queue ended, while somebody still knows: "FAILED, exit code 0:53, on n1". "" where
  // nobody does.
  virtual std::string how_ended(const SubmittedJob&) const { return ""; }
  // Why such a job may have left no log below the folder of its run, and what to do: how_ended() has said `ended`. ""
  // where this kind of site knows no reason.
  virtual std::string why_no_log(const std::string& ended, const std::string& run) const {
    static_cast<void>(ended), static_cast<void>(run);
    return "";
  }
  // The reason for which a job waits, as people read it.
  virtual std::string shown_reason(const std::string& reason) const { return reason; }
  virtual std::int64_t array_size_max() const = 0;  // jobs in one array
};

}  // namespace assay::host::batch
