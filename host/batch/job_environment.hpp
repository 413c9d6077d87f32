// What the processes of a job know about it: from Slurm's variables, or on other kinds of sites from ASSAY_JOB_KIND,
// _ID, _RESTART and _NODES, which the runner of a host (hosts_runner.hpp) and the script of a pod set.
#pragma once
#include <string>
#include <vector>

#include "shard/attempt.hpp"

namespace assay::host::batch {

shard::JobStart start_of_this_job();           // without a job: an empty one
std::vector<std::string> nodes_of_this_job();  // without a job: this machine
std::string node_of_this_process();            // as the scheduler names it: its host name may be another one

// Whether the holder of an attempt is known to be gone: its job where it is Slurm's, else its process on this machine.
bool is_attempt_over(const shard::AttemptClaim& holder);

}  // namespace assay::host::batch
