// What a scheduler tells the processes of a job about it.
#pragma once
#include <string>
#include <vector>

#include "shard/attempt.hpp"

namespace assay::host::batch {

shard::JobStart start_of_this_job();           // by SLURM_JOB_ID and SLURM_RESTART_COUNT; "" without them
std::vector<std::string> nodes_of_this_job();  // without a job: this machine
std::string node_of_this_process();            // as the scheduler names it: its host name may be another one

// Whether the holder of an attempt is known to be gone: its job, or without one its process on this machine.
bool is_attempt_over(const shard::AttemptClaim& holder);

}  // namespace assay::host::batch
