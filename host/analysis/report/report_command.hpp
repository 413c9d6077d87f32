// `assay report`: one page of runs, or one plot.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::report {

struct ReportRequest {
  std::vector<std::string> runs, by, across, results;
  std::optional<std::string> output, format, plot, baseline, metric, since;
  int width = 960;  // of a single plot, in pixels
  bool open = false, dark = false, any = false, history = false, force = false;
};

// Writes the file. Throws UsageError, PictureError.
int make_report(const ReportRequest& request);

}  // namespace assay::host::report
