#include "results/output_place.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include "common/files.hpp"
#include "common/usage_error.hpp"

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;

std::string lower_suffix(const fs::path& path) {
  std::string suffix = path.extension().string();
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return suffix;
}

std::optional<ViewFormat> format_of(std::string_view suffix) {
  if (suffix == ".csv") return ViewFormat::csv;
  if (suffix == ".md") return ViewFormat::markdown;
  if (suffix == ".json") return ViewFormat::json;
  return std::nullopt;
}

// Nobody names a folder so who does not say that it is one.
constexpr std::array<std::string_view, 9> other_files{".txt",  ".tsv", ".xlsx", ".xls",    ".html",
                                                      ".yaml", ".yml", ".log",  ".parquet"};

UsageError cannot_write(const fs::path& file, int error_number) {
  return UsageError(fmt::format("--output: {} cannot be written: {}; {}", file.string(),
                                std::generic_category().message(error_number), storage_remedy(error_number)));
}

}  // namespace

std::variant<fs::path, ViewFile> output_place(const std::string& given) {
  if (given.empty()) throw UsageError("--output is \"\"; expected a folder for results, or a .csv, .md or .json file");
  const fs::path path = given;
  std::error_code ignored;
  if (given.back() == '/' || fs::is_directory(path, ignored)) return path;
  const std::string suffix = lower_suffix(path);
  if (const auto format = format_of(suffix)) return ViewFile{path, *format};
  if (suffix == ".jsonl")
    throw UsageError(
        fmt::format("--output is {}; a run has its records in cases.jsonl of its folder: expected that "
                    "folder, or a .csv, .md or .json file",
                    given));
  if (std::find(other_files.begin(), other_files.end(), suffix) != other_files.end())
    throw UsageError(
        fmt::format("--output is {}; a run writes no {} file: expected one that ends in .csv, .md or "
                    ".json, or a folder ({}/ for one of this name)",
                    given, suffix, given));
  return path;
}

void check_writable(const ViewFile& file) {
  const fs::path folder = file.path.has_parent_path() ? file.path.parent_path() : fs::path(".");
  if (const int error_number = try_creating_folders(folder); error_number != 0)
    throw cannot_write(file.path, error_number);
  if (const int error_number = try_writing(file.path); error_number != 0) throw cannot_write(file.path, error_number);
}

void check_writable_folder(const fs::path& dir, const std::string& name, bool is_given_by_output) {
  const fs::path folder = dir / name;
  int error_number = try_creating_folders(folder);
  if (error_number == 0 && ::access(folder.c_str(), W_OK | X_OK) != 0) error_number = errno;
  if (error_number == 0 || error_number == ENOSPC || error_number == EDQUOT) return;
  throw UsageError(fmt::format("{}: no run can have its folder in {}: {}; {}",
                               is_given_by_output ? "--output" : "[output] dir", folder.string(),
                               std::generic_category().message(error_number), storage_remedy(error_number)));
}

}  // namespace assay::host::results
