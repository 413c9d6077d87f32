// The batch script of an array with its #SBATCH options: short enough that an administrator reads it.
#pragma once
#include "batch/site.hpp"
#include "batch/submission.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::batch {

struct ScriptInput {
  const Site& site;
  const SubmittedArray& array;
  std::string run_name;         // of the experiment
  std::filesystem::path run;    // absolute
  std::filesystem::path assay;  // the program
  std::int64_t attempts = 5;
  std::vector<std::filesystem::path> reads = {};  // files beside those of the run: the experiment, the plugin
};

// Of an array of the submission; paths become absolute.
ScriptInput script_input(const Site& site, const SubmittedArray& array, const Submission& submission,
                         const std::string& run_name, const std::filesystem::path& run,
                         const std::filesystem::path& assay);

// Whether the path is the folder or lies in it, by its spelling.
bool is_below(const std::filesystem::path& path, const std::filesystem::path& folder);

// Throws SiteError as batch_script() does, before there is a folder.
void check_run_path(const std::filesystem::path& path);

// Throws SiteError when a path has a character that a script or Slurm would read as something else.
std::string batch_script(const ScriptInput& input);

// The function `unready REASON` of a shard's script, which has S: it leaves the reason and the verdict `failed` of this
// start ("$JOB-$N" in words of the script) and ends the script with `exit_code`.
std::string unready_text(const std::string& start, int exit_code);
// The site's prologue, after unready_text(): a line that fails, or ends the script, is its reason. Without what the
// prologue loads the cases would measure something else.
std::string prologue_text(const Site& site);

// Whether the nodes are as they have to be: `command --node-ready`, whose complaint is the reason of unready().
// `unhealthy`: lines for the site's health check, whose exit code exit_unhealthy stands in R, with its answer in O.
std::string node_ready_text(const std::string& command, const std::string& unhealthy);
// Such lines, of scripts with ASSAY_JOB_ID and ASSAY_JOB_RESTART: they leave the reason and end with `exit_code`.
std::string unhealthy_text(int exit_code);

// The script of the job that comes after all arrays of a round: it collects, and then runs the site's lines with
// ASSAY_RUN (the run's folder) and ASSAY_COLLECTED (the exit code of `assay collect`). "" where it has no such lines.
std::string end_script(const Site& site, const std::string& id, const std::string& run_name,
                       const std::filesystem::path& run, const std::filesystem::path& assay);

// The options of sbatch that say where and how long a job runs, as the script has them: for questions to Slurm.
std::vector<std::string> place_options(const Site& site, const Shape& shape, double limit_s);

}  // namespace assay::host::batch
