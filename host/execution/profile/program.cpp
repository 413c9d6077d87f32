#include "profile/program.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace assay::host::profile {

namespace fs = std::filesystem;

std::optional<fs::path> find_program(const std::string& name, const std::string& path) {
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder) / name;
    std::error_code error;
    if (file.is_absolute() && fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return std::nullopt;
}

std::optional<fs::path> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_program(name, path ? path : "");
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-+=:,./@%") == std::string::npos;
    command += command.empty() ? "" : " ";
    if (plain) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    command += '\'';
  }
  return command;
}

}  // namespace assay::host::profile
