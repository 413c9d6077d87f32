// Has the kernel killed something for want of memory? Read before a worker starts and after it died: when a counter
// grew and the worker died of a SIGKILL that the host did not send, it was the kernel.
#pragma once
#include <cstdint>
#include <string_view>

namespace assay::host::launch {

// The number behind "oom_kill " at the start of a line (/proc/vmstat, memory.events, memory.oom_control); 0 when
// absent.
std::uint64_t oom_kills_in(std::string_view text);

// Of the whole machine and of the host's own memory cgroup (v1 or v2), added up: the machine's count is not visible in
// every container.
std::uint64_t oom_kill_count();

}  // namespace assay::host::launch
