// No process that a worker started may outlive it.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>

namespace assay::host::launch {

// Kills and reaps what is left of process group `group`, and every child of this host whose environment carries `tag`
// (descendants that left the group; orphans become children of a subreaper). Gives up after `patience`.
void reap_descendants(pid_t group, const std::string& tag, std::chrono::milliseconds patience);

}  // namespace assay::host::launch
