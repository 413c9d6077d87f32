// The notes of many cases in a few lines.
#pragma once
#include "record/case_record.hpp"

#include <functional>
#include <string>
#include <vector>

namespace assay::host::results {

// A text, and the cases that have it: "case 2 (size=large)", "cases 1-3, 5", "all 9 cases".
struct SaidOfCases {
  std::string cases, text;
};

// What `texts` gives of each record, each distinct text once, in the order of the first cases. Texts that differ in
// their figures alone are one, with the highest: "<text> (7.6% to 18.7%; the highest in case 2)". So are those of
// several ranks ("rank 3: <text>"; of the first rank records have the text alone), which are named: "ranks 0 to 3:
// <text>".
std::vector<SaidOfCases> said_of_cases(const std::vector<record::CaseRecord>& records,
                                       const std::function<std::vector<std::string>(const record::CaseRecord&)>& texts);

// Each distinct note once, with the cases that have it, in the order of the first of them:
//   "case 2 (size=large): note: <text>"
//   "cases 1-3, 5: note: <text>", "all 9 cases: note: <text>"
// Notes that differ in their figures, or in the rank that they begin with, are one, as in said_of_cases(). The number
// of a rank that stands elsewhere is no figure.
std::vector<std::string> note_lines(const std::vector<record::CaseRecord>& records);

// Why cases are not valid, where no note of theirs begins with the verdict:
//   "all 2 cases: validity unknown: <text>"
std::vector<std::string> validity_lines(const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::results
