// The batches of a site with Slurm: one cluster of several that this Slurm knows takes the arrays, and every question
// is asked of each cluster that has one.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "batch/scheduler.hpp"
#include "batch/slurm.hpp"
#include "batch/submission.hpp"

namespace assay::host::batch {

class SlurmSite : public Scheduler {
 public:
  explicit SlurmSite(const Submission& submission);

  std::optional<SubmittedJob> queue_array(const std::string& script,
                                          const std::optional<std::string>& after_ok) const override;
  std::optional<SubmittedJob> queue_at_end(const std::string& script,
                                           const std::vector<std::string>& arrays) const override;
  std::vector<QueuedJob> queue(const std::vector<std::int64_t>& users = {}) const override;
  std::string how_ended(const SubmittedJob& job) const override;
  std::string why_no_log(const std::string& ended, const std::string& run) const override;
  std::string shown_reason(const std::string& reason) const override;
  void cancel(const std::vector<SubmittedJob>& arrays) const override;
  std::int64_t array_size_max() const override;

 private:
  Slurm slurm_;                     // that takes new arrays
  std::set<std::string> clusters_;  // that have some
};

// Each that may have a job of the submission.
std::set<std::string> clusters_of(const Submission& submission);

}  // namespace assay::host::batch
