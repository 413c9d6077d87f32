// The small texts of /proc and /sys that a look at a machine is made of.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/machine.hpp"

namespace assay::host::doctor {

// Without the blanks and line ends around it; "" where the file cannot be read.
std::string word_in(const std::filesystem::path& file);
std::optional<std::int64_t> number_in_file(const std::filesystem::path& file);
// "always [madvise] never" -> "madvise".
std::string chosen_word(std::string_view text);
// A number of the lines "key: value kB" of /proc/meminfo.
std::optional<double> mib_of(std::string_view meminfo, std::string_view key);
// The type of the file system that `path` lies on, by /proc/self/mounts: "ext4"; "" where it is not known.
std::string file_system_of(std::string_view mounts, const std::filesystem::path& path);

// The ticks that each process has run, with its name, by its number.
struct ProcessTicks {
  std::string name;
  std::uint64_t ticks = 0;
};
std::map<std::int32_t, ProcessTicks> ticks_of_processes(const std::filesystem::path& proc);
// Those that ran between two looks, the busiest first, at most five; `own` is left out.
std::vector<Neighbour> busiest(const std::map<std::int32_t, ProcessTicks>& begin,
                               const std::map<std::int32_t, ProcessTicks>& end, std::int32_t own, double ticks);

std::vector<GpuOnBus> gpus_on_bus(const std::filesystem::path& sys);

}  // namespace assay::host::doctor
