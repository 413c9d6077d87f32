// `assay export`: runs in the formats of other programs.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::exports {

struct ExportRequest {
  std::vector<std::string> runs;
  std::optional<std::string> format, output;
};

// "  openmetrics  ..." for each format, a line each.
std::string format_list();

// Prints the text, or writes it. Returns the exit code. Throws UsageError.
int export_runs(const ExportRequest& request);

}  // namespace assay::host::exports
