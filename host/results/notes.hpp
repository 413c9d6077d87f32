// The notes of many cases in a few lines.
#pragma once
#include "record/case_record.hpp"

#include <string>
#include <vector>

namespace assay::host::results {

// Each distinct note once, with the cases that have it, in the order of the first of them:
//   "case 2 (size=large): note: <text>"
//   "cases 1-3, 5: note: <text>", "all 9 cases: note: <text>"
// Notes that differ in their figures alone are one, with those of the first case: "<text> (figures of case 1)". Of a
// rank the number is no figure.
std::vector<std::string> note_lines(const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::results
