// All that a page shows, as one JSON object.
#pragma once
#include "report/rounded.hpp"
#include "report/runs.hpp"

#include <string>

namespace assay::host::report {

// How many samples of steps stand on a page, of all its cases together.
inline constexpr std::size_t samples_of_a_page = 30'000;

struct PageOptions {
  std::string plot;          // the page has this plot alone; "" for a report
  bool dark = false;         // of a single plot
  std::size_t width_px = 0;  // of a single plot
  std::string made;          // when, in UTC
  std::size_t samples = samples_of_a_page;
};

Json page_data(const ReportedRuns& reported, const PageOptions& options);

// What is promised of 1,000 cases (docs/report.md).
inline constexpr std::size_t most_page_bytes = 2'000'000;
// A page of at most so many bytes, as far as fewer samples of steps make it one.
std::string fitting_page(const ReportedRuns& reported, PageOptions options, std::size_t most_bytes = most_page_bytes);

}  // namespace assay::host::report
