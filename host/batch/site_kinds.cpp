#include "batch/site_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "batch/container_image.hpp"
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
       SiteFindings findings{check_site(site, shapes, Slurm(site.cluster)), {}};
       add_image(look_for_image(site.container, site.kind), findings);
       return findings;
     },
     [](const Site& site) {
       std::vector<std::string> notes;
       if (site.asks_for_gpus()) return notes;
       if (const auto note = note_on_gpus(site, Slurm(site.cluster).nodes(site.partition))) notes.push_back(*note);
       return notes;
     }},
    {"ssh", "the hosts", false,
     [](const Submission& submission, const std::filesystem::path& run) -> std::unique_ptr<const Scheduler> {
       return std::make_unique<const HostsScheduler>(submission, run);
     },
     hosts_script, check_hosts, nullptr},
    {"kubernetes", "Kubernetes", true,
     [](const Submission& submission, const std::filesystem::path&) -> std::unique_ptr<const Scheduler> {
       return std::make_unique<const Kubernetes>(submission.name_space);
     },
     kubernetes_manifest, check_kubernetes, nullptr},
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
