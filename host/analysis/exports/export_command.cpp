#include "exports/export_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "common/exit_code.hpp"
#include "common/files.hpp"
#include "common/usage_error.hpp"
#include "exports/formats.hpp"

namespace assay::host::exports {

std::string format_list() {
  std::string text;
  for (const Format& format : all_formats()) text += fmt::format("  {:<16} {}\n", format.name, format.summary);
  text.pop_back();
  return text;
}

int export_runs(const ExportRequest& request) {
  std::vector<std::string> names;
  for (const Format& format : all_formats()) names.emplace_back(format.name);
  if (!request.format) throw UsageError(fmt::format("export needs --format: {}", fmt::join(names, ", ")));
  const Format& format = format_of(*request.format);
  std::vector<std::string> warnings;
  const auto runs = results::read_tabled_runs(request.runs, warnings);
  for (const std::string& warning : warnings) fmt::print(stderr, "assay: {}\n", warning);
  const std::string text = format.write(runs);
  if (request.output)
    // Whole or not at all: a collector may read it at any time.
    write_file_atomically(*request.output, text);
  else
    fmt::print("{}", text);
  return exit_ok;
}

}  // namespace assay::host::exports
