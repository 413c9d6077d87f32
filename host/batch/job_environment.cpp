#include "batch/job_environment.hpp"

#include <signal.h>

#include <cerrno>
#include <cstdlib>

#include "batch/site_kinds.hpp"
#include "common/host_name.hpp"

namespace assay::host::batch {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

shard::JobStart start_of_this_job() {
  if (const std::string job = variable("ASSAY_JOB_ID"); !job.empty())
    return {job, std::strtoll(variable("ASSAY_JOB_RESTART").c_str(), nullptr, 10), "", variable("ASSAY_JOB_KIND")};
  const std::string job = variable("SLURM_JOB_ID");
  return {job, std::strtoll(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10), variable("ASSAY_CLUSTER"),
          job.empty() ? "" : SlurmSettings::kind.name};
}

std::vector<std::string> nodes_of_this_job() {
  if (std::string rest = variable("ASSAY_JOB_NODES"); !rest.empty()) {
    std::vector<std::string> nodes;
    for (std::size_t comma = 0; comma != std::string::npos; rest = rest.substr(comma + 1)) {
      comma = rest.find(',');
      nodes.push_back(rest.substr(0, comma));
      if (comma == std::string::npos) break;
    }
    return nodes;
  }
  std::string list = variable("SLURM_STEP_NODELIST");
  if (list.empty()) list = variable("SLURM_JOB_NODELIST");
  if (auto nodes = expand_nodes(list); nodes && !nodes->empty()) return *nodes;
  return {host_name()};
}

std::string node_of_this_process() {
  for (const char* each : {"ASSAY_HOSTS_NAME", "ASSAY_JOB_NODE", "SLURMD_NODENAME"})
    if (const std::string name = variable(each); !name.empty() && name.find('/') == std::string::npos) return name;
  return host_name();
}

bool is_attempt_over(const shard::AttemptClaim& holder) {
  // Older versions knew Slurm alone.
  const bool is_older = holder.start.kind.empty() && !holder.start.job.empty();
  if (const SiteKind* kind = is_older ? &SlurmSettings::kind : find_site_kind(holder.start.kind);
      kind && kind->is_job_over)
    return kind->is_job_over(holder.start);
  return holder.host == host_name() && holder.pid > 0 && ::kill(static_cast<pid_t>(holder.pid), 0) != 0 &&
         errno == ESRCH;
}

}  // namespace assay::host::batch
