// `assay run`: experiments one after the other, a part of one, a shard of a batch, or a dry run.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "run/experiment_run.hpp"
#include "run/load_experiment.hpp"
#include "run/shard_run.hpp"

namespace assay::host::console {

// What the plugins call wrong, and in how many cases.
struct RefusedCases {
  std::vector<experiment::Mistake> mistakes;
  std::size_t cases = 0;
  std::size_t not_asked = 0;  // for want of time
};

struct RunRequest {
  std::vector<std::string> experiments;  // files, or workloads that need none
  std::optional<std::string> text;       // of the experiment, in the place of a file
  std::vector<std::string> set, filter, plugin_path;
  std::optional<std::string> output, shard, hosts_file;
  std::vector<std::string> arguments;  // the command line behind "assay run", for ranks on other hosts
  std::optional<std::int64_t> until;   // seconds since 1970
  bool dry_run = false, resume = false, start_new = false, any_machine = false, in_process = false;
  bool quiet = false, json = false;
  bool node_ready = false;  // with `shard`: look whether this node can run it, and run nothing

  // What wings above this one know: how a dry run looks, what plugins refuse, and the job of a scheduler.
  std::function<int(const run::LoadedExperiment&, const run::RunOptions&, bool as_json)> show_dry_run;
  std::function<RefusedCases(const run::LoadedExperiment&, const std::optional<wireup::LaunchedRank>&)> refused_cases;
  std::function<shard::JobStart()> job_start;
  std::function<std::vector<std::string>()> job_nodes;
  std::function<std::string()> job_node;  // this machine, as the scheduler names it
  std::function<bool(const shard::AttemptClaim&)> is_attempt_over;
};

// Returns the exit code. Throws UsageError.
int run_experiments(const RunRequest& request);

}  // namespace assay::host::console
