// The kinds of sites: what starts the jobs of a batch, and the script of one. Each kind is a row of site_settings.hpp
// and the files that it names; a site file has the table of its kind.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "batch/packing.hpp"
#include "batch/scheduler.hpp"
#include "batch/script.hpp"
#include "batch/site.hpp"
#include "batch/site_check.hpp"
#include "batch/site_keys.hpp"
#include "batch/submission.hpp"
#include "shard/attempt.hpp"

namespace assay::host::batch {

// A site file that has been read, with the mistakes that no value shows by itself.
struct SiteReading {
  Site& site;
  experiment::Mistakes& mistakes;
  experiment::Place start;                                            // of the file
  std::function<experiment::Place(const std::string& key)> place_of;  // of a key that stands in it
};

// A node of a site, for cases that are bound to nodes.
struct SiteNode {
  std::string name, state;
  bool is_usable = true;
};

// A setting as two sites have it: this one, and the one to which a batch was submitted: "hosts = [...]".
struct SiteDifference {
  std::string of_site, of_batch;
};

// A function may be null where its comment gives the meaning of that.
struct SiteKind {
  const char* name;      // of its table, too: "slurm" of [slurm]
  const char* shown;     // to people: "Slurm"
  const char* expected;  // its table, for a file that has none: "[ssh] with its hosts"
  bool has_images;       // each job runs in one, whatever the site file has
  bool has_gpu_types;    // gpus_per_node may be "h100:8"

  std::vector<SiteKey> (*keys)();
  void (*complete)(SiteReading& reading);            // null: values need no others
  std::string (*listed)(const Site& site);           // by `assay site`
  bool (*asks_for_gpus)(const Site& site);           // by other keys than gpus_per_node; null: there are none
  std::string (*cluster)(const SiteTarget& target);  // that its jobs must find themselves on; null: any

  // The keys of submission.json that say where the jobs of a batch are.
  nlohmann::ordered_json (*json_of_target)(const SiteTarget& target);
  SiteTarget (*target_of_json)(const nlohmann::ordered_json& submission);
  // In what a site differs from the one that took a batch, which then cannot go on there.
  std::optional<SiteDifference> (*difference)(const Site& site, const SiteTarget& target);
  // The machines that all jobs share; null: a scheduler finds nodes for each.
  std::vector<std::string> (*hosts)(const SiteTarget& target);

  // Those that [cluster] each_node takes. Throws SchedulerError.
  std::vector<SiteNode> (*nodes)(const Site& site);
  // `run`: of the submission; empty before there is one.
  std::unique_ptr<const Scheduler> (*scheduler)(const Submission& submission, const std::filesystem::path& run);
  std::string (*script)(const ScriptInput& input);
  // Of a job after all arrays of a round; "" where the site has none. Null: such jobs are not to be had.
  std::string (*end_script)(const Site& site, const std::string& id, const std::string& run_name,
                            const std::filesystem::path& run, const std::filesystem::path& assay);
  // Whether nobody can still be at the attempt of such a job; null: by its process alone.
  bool (*is_job_over)(const shard::JobStart& start);
  // A line for each setting of the site, and each shape, that would not work. Throws SchedulerError.
  SiteFindings (*check)(const Site& site, const std::vector<Shape>& shapes, const CheckedRuns& runs);
  // What may not be meant where cases may run on a GPU; null: nothing can be known. Throws SchedulerError.
  std::vector<std::string> (*notes_on_gpus)(const Site& site);
};

// In the order of site_settings.hpp.
std::vector<const SiteKind*> site_kinds();
const SiteKind* find_site_kind(const std::string& name);  // null: a later version of assay knows it
const SiteKind& site_kind(const Site& site);
// Throws StorageError where a later version of assay has submitted the batch.
const SiteKind& site_kind(const Submission& submission);
std::vector<std::string> names_of_site_kinds();
std::string name_of_kind(const SiteTarget& target);

SiteSettings no_settings(const SiteKind& kind);  // of a site that has none yet
// As SiteKind has them; empty where it has none, and for a later kind.
std::vector<std::string> hosts_of(const SiteTarget& target);
std::string cluster_of(const SiteTarget& target);

// Of a batch, and of a site that one is about to be submitted to.
std::unique_ptr<const Scheduler> scheduler_of(const Submission& submission, const std::filesystem::path& run);
std::unique_ptr<const Scheduler> scheduler_of(const Site& site);

}  // namespace assay::host::batch
