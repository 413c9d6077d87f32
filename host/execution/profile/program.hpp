// The programs of profilers: where they are, and how they are called by hand.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::profile {

// The first executable of that name in the folders of `path`, a list as PATH has it; relative folders do not count.
std::optional<std::filesystem::path> find_program(const std::string& name, const std::string& path);
// Of this process's own PATH.
std::optional<std::filesystem::path> find_program(const std::string& name);

// As a shell reads it.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace assay::host::profile
