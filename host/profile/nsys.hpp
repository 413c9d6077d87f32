// Running a worker under NVIDIA's Nsight Systems, whose program is nsys.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::profile {

// The first executable of that name in the folders of `path`, a list as PATH has it; relative folders do not count.
std::optional<std::filesystem::path> find_program(const std::string& name, const std::string& path);

// What goes between "nsys" and the program to profile. The report is `output` with .nsys-rep after it. `trace`: what
// nsys traces; nothing when empty. `ranges`: how many cases the program measures one after the other; each gets a
// report of its own when there are several.
std::vector<std::string> nsys_arguments(const std::filesystem::path& output, const std::vector<std::string>& trace,
                                        std::size_t ranges = 1);

// As a shell reads it.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace assay::host::profile
