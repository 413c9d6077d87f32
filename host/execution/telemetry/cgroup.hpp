// The limits of the control group that this process runs in: containers, Slurm jobs, services.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace assay::host::telemetry {

// The smallest of the limits from the process's group up to the root, in versions 1 and 2 of the interface; nothing
// where there is none. `root` is "/" but for tests.
std::optional<double> cgroup_cpu_quota_cores(const std::filesystem::path& root);
std::optional<std::uint64_t> cgroup_memory_limit_bytes(const std::filesystem::path& root);

// How many numbers the kernel's list names: "0-3,8" -> 5; 0 when it is no list.
std::size_t count_of_list(std::string_view list);

}  // namespace assay::host::telemetry
