#include "batch/site_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "batch/hosts_site.hpp"
#include "batch/kubernetes_site.hpp"
#include "batch/slurm_site.hpp"
#include "common/files.hpp"

namespace assay::host::batch {
namespace {

constexpr SiteKind kinds[] = {
    {"slurm", "Slurm", false,
     [](const Submission& submission, const std::filesystem::path&) -> std::unique_ptr<const Scheduler> {
       return std::make_unique<const SlurmSite>(submission);
     },
     batch_script,
     [](const Site& site, const std::vector<Shape>& shapes, const CheckedRuns&) {
       return check_site(site, shapes, Slurm(site.cluster));
     }},
    {"ssh", "the hosts", false,
     [](const Submission& submission, const std::filesystem::path& run) -> std::unique_ptr<const Scheduler> {
       return std::make_unique<const HostsScheduler>(submission, run);
     },
     hosts_script, problems_of_hosts},
    {"kubernetes", "Kubernetes", true,
     [](const Submission& submission, const std::filesystem::path&) -> std::unique_ptr<const Scheduler> {
       return std::make_unique<const Kubernetes>(submission.name_space);
     },
     kubernetes_manifest, problems_of_kubernetes},
};

}  // namespace

const SiteKind& site_kind(const std::string& name) {
  for (const SiteKind& kind : kinds)
    if (name == kind.name) return kind;
  throw StorageError(
      fmt::format("the batch was submitted to a site of the kind '{}', and this assay knows {}; use the "
                  "assay that submitted it",
                  name, fmt::join(names_of_site_kinds(), ", ")));
}

std::vector<std::string> names_of_site_kinds() {
  std::vector<std::string> names;
  for (const SiteKind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<const Scheduler> scheduler_of(const Submission& submission, const std::filesystem::path& run) {
  return site_kind(submission.kind).scheduler(submission, run);
}

std::unique_ptr<const Scheduler> scheduler_of(const Site& site) {
  Submission submission;
  submission.kind = site.kind, submission.cluster = site.cluster;
  submission.hosts = site.hosts, submission.name_space = site.name_space;
  return scheduler_of(submission, {});
}

}  // namespace assay::host::batch
