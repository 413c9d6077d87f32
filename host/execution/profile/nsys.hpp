// Running a worker under NVIDIA's Nsight Systems, whose program is nsys.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::profile {

// What goes between "nsys" and the program to profile. The report is `output` with .nsys-rep after it. `trace`: what
// nsys traces; nothing when empty. `ranges`: how many cases the program measures one after the other; each gets a
// separate report when there are several.
std::vector<std::string> nsys_arguments(const std::filesystem::path& output, const std::vector<std::string>& trace,
                                        std::size_t ranges = 1);

}  // namespace assay::host::profile
