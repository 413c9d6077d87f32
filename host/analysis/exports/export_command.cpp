#include "exports/export_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <set>

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

int export_runs(const ExportRequest& request) {
  if (!request.format)
    throw UsageError(fmt::format("export needs --format: {}", fmt::join(format_names(all_formats()), ", ")));
  const Format& format = format_of(*request.format);
  if (format.write_folder && !request.output)
    throw UsageError(fmt::format("{} is a folder; give its name as --output", format.name));
  std::vector<std::string> warnings;
  auto runs = results::read_tabled_runs(request.runs, warnings);
  drop_copies(runs, warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "assay: {}\n", warning);
  if (format.write_folder) {
    for (const ExportedFile& file : format.write_folder(runs)) {
      const std::filesystem::path path = std::filesystem::path(*request.output) / file.place;
      create_folders(path.parent_path());
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
