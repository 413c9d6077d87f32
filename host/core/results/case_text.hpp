// One case in one line of text, for the progress line, the summary and the lines below a table.
#pragma once
#include "common/value.hpp"
#include "record/case_record.hpp"

#include <string>
#include <utility>
#include <vector>

namespace assay::host::results {

// "size=small pass=forward", "size=small repeat 2"; "" without either.
std::string case_label(const record::Named<Value>& axes, const std::optional<std::int64_t>& repeat = std::nullopt);
// "case 3 (size=xl)"; cases count from 1, as in the progress line.
std::string case_name(const record::CaseRecord& record);

// "ok step 1243 ms ± 0.8%", or the status with its reason.
std::string case_summary(const record::CaseRecord& record);

// One line per case that is not ok: "case 3 (size=xl): oom: <reason> [setup, phase forward, rank 1]". Cases count from
// 1, as in the progress line. A status in `allow` is marked as expected.
std::vector<std::string> problem_lines(const std::vector<record::CaseRecord>& records,
                                       const std::vector<std::string>& allow);

}  // namespace assay::host::results
