#include "run/output_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace assay::host::run {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> obstacle_to(const fs::path& file, const fs::path& run_folder) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored))
    return fmt::format("{} cannot be written: a folder of that name is there; name another file, or remove the folder",
                       file.string());
  for (fs::path folder = file.parent_path(); folder != run_folder && folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
      return fmt::format("{} cannot be written: {} is no folder; name another file, or remove that one", file.string(),
                         folder.string());
  return std::nullopt;
}

}  // namespace

std::optional<std::string> obstacle_to_outputs(const std::vector<worker::CaseSpec>& ranks) {
  for (const worker::CaseSpec& rank : ranks)
    for (const std::string& file : rank.output_files)
      if (auto obstacle = obstacle_to(file, rank.run_folder)) return obstacle;
  return std::nullopt;
}

void remove_half_written(const std::vector<worker::CaseSpec>& ranks) noexcept {
  for (const worker::CaseSpec& rank : ranks)
    for (const std::string& file : rank.output_files) {
      std::error_code ignored;
      const fs::path partial = file + ".partial";
      if (fs::is_regular_file(fs::symlink_status(partial, ignored))) fs::remove(partial, ignored);
    }
}

}  // namespace assay::host::run
