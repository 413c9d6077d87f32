// `assay import`: results of other programs as runs.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::imports {

struct ImportRequest {
  std::vector<std::string> files;
  std::vector<std::string> step;  // METRIC=UNIT
  std::optional<std::string> format, name, experiment, date, host, device, revision, output;
  bool again = false;  // though a run has the same file
};

// "  nccl-tests  ..." for each format, a line each.
std::string format_list();

// Makes a run of each file. Throws UsageError.
int import_files(const ImportRequest& request);

}  // namespace assay::host::imports
