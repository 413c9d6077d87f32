#include "batch/site_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include "batch/site_kinds.hpp"
#include "batch/slurm.hpp"
#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/usage_error.hpp"
#include "run/load_experiment.hpp"

namespace assay::host::batch {
namespace {

namespace fs = std::filesystem;

int print_sites() {
  const std::vector<fs::path> sites = known_sites();
  if (sites.empty()) fmt::print("no site file in {}; `assay site --new NAME` writes one\n", sites_folder().string());
  int code = exit_ok;
  for (const fs::path& file : sites) {
    const SiteResult result = read_site(file);
    if (!result.site) {
      fmt::print("{}: cannot be used\n", file.stem().string());
      for (const experiment::Mistake& mistake : result.mistakes) fmt::print(stderr, "  {}\n", mistake.to_string());
      code = exit_usage;
      continue;
    }
    const Site& site = *result.site;
    fmt::print("{}: {}; {}\n", site.name, site_kind(site).listed(site), site.file.string());
  }
  return code;
}

// The default partition, or the one that is named.
std::string site_text(const std::vector<NodeState>& nodes, std::string partition) {
  std::set<std::string> names;
  for (const NodeState& node : nodes) {
    std::string name = node.partition;
    const bool is_default = name.ends_with('*');
    if (is_default) name.pop_back();
    names.insert(name);
    if (partition.empty() && is_default) partition = name;
  }
  if (partition.empty() && !names.empty()) partition = *names.begin();
  if (!names.contains(partition)) throw UsageError(fmt::format("the cluster has no partition '{}'", partition));
  std::int64_t count = 0, usable = 0, gpus = 0, limit_s = 0;
  std::set<std::string> features;
  for (const NodeState& node : nodes) {
    if (node.partition != partition && node.partition != partition + "*") continue;
    ++count;
    usable += node.is_usable() ? 1 : 0;
    gpus = std::max(gpus, node.gpus());
    if (!node.features.empty()) features.insert(node.features);
    limit_s = parse_time_limit_s(node.time_limit).value_or(0);
  }
  std::string others;
  for (const std::string& name : names) others += (others.empty() ? "" : ", ") + name;
  std::string feature_list;
  for (const std::string& name : features) feature_list += (feature_list.empty() ? "" : "; ") + name;
  const std::int64_t time_max_min = limit_s > 0 ? std::min<std::int64_t>(limit_s / 60, 240) : 240;
  const std::int64_t margin_min = std::max<std::int64_t>(std::min<std::int64_t>(5, time_max_min / 4), 1);
  return fmt::format(
      "# A site of assay: what this cluster needs to know. Every key is optional; docs/cluster.md describes them.\n"
      "schema = 1\n\n[slurm]\n"
      "partition = \"{}\"        # {} nodes, {} of them usable now; the cluster has: {}\n"
      "# account = \"\"\n# qos = \"\"\n"
      "# constraint = \"\"         # features of the nodes: {}\n"
      "# reservation = \"\"\n"
      "gpus_per_node = {}        # or \"TYPE:NUMBER\": \"h100:8\"\n"
      "time_max = \"{}m\"         # of one job; the partition's limit is {}\n"
      "requeue = true           # a job that was preempted, or lost its node, continues\n"
      "exclusive = true         # whole nodes: a neighbour would be measured, too\n"
      "exclude = []             # nodes that no job may have\n"
      "sbatch_extra = []        # options of sbatch, as they are: [\"--mem=0\"] for all of a node's memory\n"
      "srun_extra = []          # options of srun: [\"--container-image=...\"]\n"
      "prologue = []            # lines of the batch script before assay starts: [\"module load cuda\"]\n\n"
      "[slurm.limits]\n"
      "array_parallel = 16      # shards of one array at once\n"
      "attempts = 5             # starts of one shard's job\n"
      "# node_hours = 200       # a submission above is refused\n"
      "case_budget = \"10m\"      # of a case without a known budget\n"
      "margin = \"{}m\"           # kept free at the end of a job\n\n"
      "[slurm.canary]\n"
      "enable = true            # the cheapest case first; the others when it is ok\n",
      partition, count, usable, others, feature_list.empty() ? "none" : feature_list, gpus, time_max_min,
      limit_s > 0 ? fmt::format("{} min", limit_s / 60) : "none", margin_min);
}

int write_site(const std::string& name, const std::string& partition) {
  if (name.empty() || name.find('/') != std::string::npos || name.front() == '.')
    throw UsageError(fmt::format("--new is '{}'; expected a name without '/'", name));
  const fs::path file = sites_folder() / (name + ".toml");
  std::error_code error;
  if (fs::exists(file, error))
    throw UsageError(fmt::format("{} is there already; change it, or choose another name", file.string()));
  const std::string text = site_text(Slurm().nodes(""), partition);
  create_folders(file.parent_path());
  write_file_atomically(file, text, Durable::yes);
  fmt::print("written: {}; look through it, then: assay submit EXPERIMENT.toml --site {} --check\n", file.string(),
             name);
  return exit_ok;
}

}  // namespace

int sites(const SiteRequest& request) {
  if (request.partition && !request.new_name) throw UsageError("--partition goes with --new");
  return request.new_name ? write_site(*request.new_name, request.partition.value_or("")) : print_sites();
}

}  // namespace assay::host::batch
