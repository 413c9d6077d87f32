#include "batch/slurm_site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <variant>

#include "batch/container_image.hpp"
#include "batch/site_kinds.hpp"
#include "batch/slurm_keys.hpp"

namespace assay::host::batch {
namespace {

const std::string& cluster_in(const SiteTarget& target) { return std::get<SlurmTarget>(target).cluster; }

// Of the site's partition, or of the default one.
std::vector<SiteNode> nodes_of_partition(const Site& site) {
  const auto& slurm = std::get<SlurmSettings>(site.settings);
  std::vector<SiteNode> nodes;
  for (const NodeState& node : Slurm(slurm.cluster).nodes(slurm.partition))
    if (!slurm.partition.empty() || node.partition.ends_with('*'))
      nodes.push_back({node.name, node.state, node.is_usable(!slurm.reservation.empty())});
  return nodes;
}

bool options_ask_for_gpus(const Site& site) {
  const auto& options = std::get<SlurmSettings>(site.settings).sbatch_extra;
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.starts_with("--gpus") || option.starts_with("-G") ||
           (option.starts_with("--gres") && option.find("gpu") != std::string::npos);
  });
}

std::string listed_partition(const Site& site) {
  const std::string& partition = std::get<SlurmSettings>(site.settings).partition;
  return fmt::format("partition {}, jobs up to {} min, {} GPUs a node, {} shards at once",
                     partition.empty() ? "(the cluster's default)" : partition,
                     std::chrono::duration_cast<std::chrono::minutes>(site.time_max).count(), site.gpus_per_node,
                     site.limits.array_parallel);
}

std::optional<SiteDifference> difference_of_cluster(const Site& site, const SiteTarget& target) {
  const auto shown = [](const char* key, const std::string& value) { return fmt::format("{} = \"{}\"", key, value); };
  const std::string& of_site = std::get<SlurmSettings>(site.settings).cluster;
  if (of_site == cluster_in(target)) return std::nullopt;
  return SiteDifference{shown("[slurm] cluster", of_site), shown("cluster", cluster_in(target))};
}

SiteFindings check_slurm(const Site& site, const std::vector<Shape>& shapes, const CheckedRuns&) {
  SiteFindings findings{check_site(site, shapes, Slurm(std::get<SlurmSettings>(site.settings).cluster)), {}};
  add_image(look_for_image(site.container, site.kind()), findings);
  return findings;
}

std::vector<std::string> notes_on_partition(const Site& site) {
  if (site.asks_for_gpus()) return {};
  const auto& slurm = std::get<SlurmSettings>(site.settings);
  const auto note = note_on_gpus(site, Slurm(slurm.cluster).nodes(slurm.partition));
  return note ? std::vector{*note} : std::vector<std::string>{};
}

}  // namespace

constinit const SiteKind SlurmSettings::kind{
    .name = "slurm",
    .shown = "Slurm",
    .expected = "[slurm] with the site's partition and limits",
    .has_images = false,
    .has_gpu_types = true,
    .keys = slurm_keys,
    .complete = nullptr,
    .listed = listed_partition,
    .asks_for_gpus = options_ask_for_gpus,
    .cluster = [](const SiteTarget& target) { return cluster_in(target); },
    .json_of_target =
        [](const SiteTarget& target) {
          return nlohmann::ordered_json{{"cluster", cluster_in(target)}};
        },
    .target_of_json = [](const nlohmann::ordered_json& json) -> SiteTarget {
      return SlurmTarget{json.value("cluster", "")};
    },
    .difference = difference_of_cluster,
    .hosts = nullptr,
    .nodes = nodes_of_partition,
    .scheduler = [](const Submission& submission, const std::filesystem::path&) -> std::unique_ptr<const Scheduler> {
      return std::make_unique<const SlurmSite>(submission);
    },
    .script = batch_script,
    .end_script = end_script,
    .is_job_over = [](const shard::JobStart& start) { return Slurm(start.cluster).is_over(start.job); },
    .check = check_slurm,
    .notes_on_gpus = notes_on_partition,
};

std::set<std::string> clusters_of(const Submission& submission) {
  const std::string& cluster = cluster_in(submission.target);
  std::set<std::string> clusters;
  for (const SubmittedArray& array : submission.arrays) clusters.insert(array.job ? array.cluster : cluster);
  if (clusters.empty()) clusters.insert(cluster);
  return clusters;
}

SlurmSite::SlurmSite(const Submission& submission)
    : slurm_(cluster_in(submission.target)), clusters_(clusters_of(submission)) {}

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

std::int64_t SlurmSite::array_size_max() const { return slurm_.array_size_max(); }

}  // namespace assay::host::batch
