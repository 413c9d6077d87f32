#include "batch/slurm_site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

namespace assay::host::batch {

SlurmSite::SlurmSite(const Submission& submission) : slurm_(submission.cluster), clusters_(clusters_of(submission)) {}

std::optional<SubmittedJob> SlurmSite::queue_array(const std::string& script,
                                                   const std::optional<std::string>& after_ok) const {
  if (!after_ok) return slurm_.submit(script, {});
  return slurm_.submit(script, {"--dependency=afterok:" + *after_ok, "--kill-on-invalid-dep=yes"});
}

std::optional<SubmittedJob> SlurmSite::queue_at_end(const std::string& script,
                                                    const std::vector<std::string>& arrays) const {
  return slurm_.submit(script, {fmt::format("--dependency=afterany:{}", fmt::join(arrays, ":"))});
}

std::vector<QueuedJob> SlurmSite::queue(const std::vector<std::int64_t>& users) const {
  std::vector<QueuedJob> jobs;
  for (const std::string& cluster : clusters_)
    for (QueuedJob& job : Slurm(cluster).queue(users)) jobs.push_back(std::move(job));
  return jobs;
}

std::string SlurmSite::how_ended(const SubmittedJob& job) const { return Slurm(job.cluster).how_ended(job.number); }

std::string SlurmSite::why_no_log(const std::string& ended, const std::string& run) const {
  if (ended.starts_with("CANCELLED")) return "it was cancelled before it began";
  const std::string remedy = "submit with --output on a file system that login node and nodes share";
  // Slurm's own number for a file of the job that its node cannot open.
  if (ended.find("exit code 0:53") != std::string::npos)
    return fmt::format("its node cannot open the log, so it does not see {}; {}", run, remedy);
  return fmt::format("it was cancelled before it began, or its node does not see {}; then {}", run, remedy);
}

std::string SlurmSite::shown_reason(const std::string& reason) const {
  return reason == "None" ? "Slurm has given no reason yet" : reason;
}

void SlurmSite::cancel(const std::vector<SubmittedJob>& arrays) const {
  std::map<std::string, std::vector<std::string>> numbers;  // by cluster
  for (const SubmittedJob& array : arrays) numbers[array.cluster].push_back(array.number);
  for (const auto& [cluster, of_cluster] : numbers) Slurm(cluster).cancel(of_cluster);
}

std::vector<NodeState> SlurmSite::nodes(const std::string& partition) const { return slurm_.nodes(partition); }
std::int64_t SlurmSite::array_size_max() const { return slurm_.array_size_max(); }

}  // namespace assay::host::batch
