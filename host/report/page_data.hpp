// All that a page shows, as one JSON object.
#pragma once
#include "report/rounded.hpp"
#include "report/runs.hpp"

#include <string>

namespace assay::host::report {

struct PageOptions {
  std::string plot;  // the page has this plot alone; "" for a report
  bool dark = false;
  std::size_t width_px = 0;  // of a single plot
  std::string made;          // when, in UTC
};

Json page_data(const ReportedRuns& reported, const PageOptions& options);

// How many samples of steps stand on a page, of all its cases together: with these a page of 1,000 cases stays below
// half of the size that is promised (docs/report.md).
inline constexpr std::size_t samples_of_a_page = 40'000;

}  // namespace assay::host::report
