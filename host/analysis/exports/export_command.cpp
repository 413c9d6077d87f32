#include "exports/export_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/format_choice.hpp"
#include "common/usage_error.hpp"
#include "exports/formats.hpp"

namespace assay::host::exports {

std::string format_list() { return host::format_list(all_formats()); }

// A record that stands in two runs, one of them a copy or the same, would count twice for whoever reads the text.
void drop_copies(std::vector<results::TabledRun>& runs, std::vector<std::string>& warnings) {
  std::set<std::string> seen;
  for (results::TabledRun& run : runs) {
    const std::size_t dropped = std::erase_if(run.records, [&seen](const record::CaseRecord& record) {
      const std::string key = record::measurement_key(record);
      return !key.empty() && !seen.insert(key).second;
    });
    if (dropped > 0)
      warnings.push_back(fmt::format("{} {} of {} stand in another of these runs, too, and count once", dropped,
                                     dropped == 1 ? "record" : "records", run.source.run));
  }
  std::erase_if(runs, [](const results::TabledRun& run) { return run.records.empty(); });
}

namespace {

// Before anything is read, which takes a while.
void check_place(const Format& format, const std::optional<std::string>& output) {
  if (!output) {
    if (format.write_folder) throw UsageError(fmt::format("{} is a folder; give its name as --output", format.name));
    return;
  }
  std::error_code error;
  const std::filesystem::path path = *output;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (format.write_folder && std::filesystem::exists(status) && !std::filesystem::is_directory(status))
    throw UsageError(fmt::format("--output is {}, a file, and {} is a folder; name a folder, or move the file away",
                                 *output, format.name));
  if (format.write_folder) return;
  if (std::filesystem::is_directory(status))
    throw UsageError(
        fmt::format("--output is {}, a folder, and {} is one file; name a file, in this folder or elsewhere", *output,
                    format.name));
  if (const auto folder = path.parent_path(); !folder.empty() && !std::filesystem::is_directory(folder, error))
    throw UsageError(fmt::format("--output is {}, and there is no folder {}; make it, or name a file elsewhere",
                                 *output, folder.string()));
}

}  // namespace

int export_runs(const ExportRequest& request) {
  if (!request.format)
    throw UsageError(fmt::format("export needs --format: {}", fmt::join(format_names(all_formats()), ", ")));
  const Format& format = format_of(*request.format);
  check_place(format, request.output);
  std::vector<std::string> warnings;
  auto runs = results::read_tabled_runs(request.runs, warnings);
  drop_copies(runs, warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "assay: {}\n", warning);
  if (runs.empty())
    throw UsageError(fmt::format("nothing is exported: no case of {} has finished; name a run that has records",
                                 fmt::join(request.runs, ", ")));
  if (format.write_folder) {
    for (const ExportedFile& file : format.write_folder(runs)) {
      const std::filesystem::path path = std::filesystem::path(*request.output) / file.place;
      // Without waiting for the disk as create_folders() does: an export can be made again, and has a folder a case.
      std::error_code error;
      std::filesystem::create_directories(path.parent_path(), error);
      if (error) throw_storage_error("create the folder", path.parent_path(), error.value());
      write_file_atomically(path, file.bytes);
    }
    return exit_ok;
  }
  const std::string text = format.write(runs);
  if (request.output)
    // Whole or not at all: a collector may read it at any time.
    write_file_atomically(*request.output, text);
  else
    fmt::print("{}", text);
  return exit_ok;
}

}  // namespace assay::host::exports
