#include "profile/nsys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

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

std::vector<std::string> nsys_arguments(const fs::path& output, const std::vector<std::string>& trace,
                                        std::size_t ranges) {
  return {
      "profile",
      fmt::format("--trace={}", trace.empty() ? "none" : fmt::format("{}", fmt::join(trace, ","))),
      "--capture-range=cudaProfilerApi",
      // The default ends the profiled program with its range; it has yet to verify and to send its record.
      ranges > 1 ? fmt::format("--capture-range-end=repeat:{}", ranges) : "--capture-range-end=stop",
      "--cuda-graph-trace=node",  // the kernels of a step that is one graph
      "--sample=none",
      "--cpuctxsw=none",
      "--wait=primary",
      "--force-overwrite=true",
      "--output=" + output.string(),
  };
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
