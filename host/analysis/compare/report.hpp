// A comparison as text.
#pragma once
#include "common/palette.hpp"
#include "compare/comparison.hpp"

#include <string>

namespace assay::host::compare {

struct ReportOptions {
  bool side_by_side = false;  // the metrics in one table, without their intervals, in place of a table each
  bool tells_test = false;    // how it was tested stands at the end
  Palette palette;            // of the verdicts; for people
  std::string by = "";        // the keys of --by, with commas, where the sides are parts of a run
};

// For people; at most `width_columns` wide where the tables allow it.
std::string comparison_text(const Comparison& comparison, const TestOptions& test, std::size_t width_columns,
                            const ReportOptions& options = {});
std::string comparison_markdown(const Comparison& comparison, const TestOptions& test,
                                const ReportOptions& options = {});
// One line per metric, case and side, with full precision; side by side one line per case.
std::string comparison_csv(const Comparison& comparison, const ReportOptions& options = {});
// Everything, for programs: sides, differences, metrics with their cases, unmatched cases, and how it was tested.
std::string comparison_json(const Comparison& comparison, const TestOptions& test);

// The test and its thresholds in a few lines.
std::vector<std::string> test_lines(const TestOptions& test);

}  // namespace assay::host::compare
