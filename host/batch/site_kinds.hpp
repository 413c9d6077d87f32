// The kinds of sites: what starts the jobs of a batch, and the script of one. A row for each; a site file has the table
// of its kind.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "batch/packing.hpp"
#include "batch/scheduler.hpp"
#include "batch/script.hpp"
#include "batch/site.hpp"
#include "batch/site_check.hpp"
#include "batch/submission.hpp"

namespace assay::host::batch {

struct SiteKind {
  const char* name;   // of its table, too: "slurm" of [slurm]
  const char* shown;  // to people: "Slurm"
  bool has_images;    // each job runs in one, whatever the site file has
  // `run`: of the submission; empty before there is one.
  std::unique_ptr<const Scheduler> (*scheduler)(const Submission& submission, const std::filesystem::path& run);
  std::string (*script)(const ScriptInput& input);
  // A line for each setting of the site, and each shape, that would not work. Throws SchedulerError.
  SiteFindings (*check)(const Site& site, const std::vector<Shape>& shapes, const CheckedRuns& runs);
  // What may not be meant where cases may run on a GPU; null: nothing can be known. Throws SchedulerError.
  std::vector<std::string> (*notes_on_gpus)(const Site& site);
};

// Throws StorageError where a later version of assay has written a name that this one does not know.
const SiteKind& site_kind(const std::string& name);
std::vector<std::string> names_of_site_kinds();

// Of a batch, and of a site that one is about to be submitted to.
std::unique_ptr<const Scheduler> scheduler_of(const Submission& submission, const std::filesystem::path& run);
std::unique_ptr<const Scheduler> scheduler_of(const Site& site);

}  // namespace assay::host::batch
