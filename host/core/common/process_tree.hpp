// The processes that a process has started, and what they take. Read from /proc: what ends meanwhile is left out, and
// counts as nothing.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::host {

// Lists the children of all threads of `pid`. On a kernel without lists of children all of /proc is looked through.
std::vector<pid_t> children_of(pid_t pid);
// "NAME=value" stands in the environment that the process was started with.
bool has_variable(pid_t pid, const std::string& entry);

// The process `root`'s descendants, itself left out. Those whose parent has ended belong to `adopter` then (a subreaper
// above it): `entry` in their environment distinguishes them from its other children ("" looks for none).
std::vector<pid_t> descendants_of(pid_t root, pid_t adopter, const std::string& entry);

std::uint64_t resident_bytes_of(pid_t pid);
// The most that this process has had of it since it began its program; 0 where the system does not say.
std::uint64_t own_peak_resident_bytes();
// Pages that several processes share count for each with its part; 0 where the kernel does not say. The kernel walks
// all its pages for that.
std::uint64_t proportional_bytes_of(pid_t pid);
// Adds up all its threads, and its children that it has waited for, to a tick of the kernel (10 ms).
double cpu_seconds_of(pid_t pid);

}  // namespace assay::host
