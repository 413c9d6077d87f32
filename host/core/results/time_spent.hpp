// Where the time of a run's cases went, in one line.
#pragma once
#include <string>
#include <vector>

#include "record/case_record.hpp"

namespace assay::host::results {

// "38 s in 12 cases: verification 61% (operations 41%), set-up 20%, measuring 9%, other 10%"; "" where no case has a
// time. In parentheses stands the part that takes longest.
std::string time_spent(const std::vector<record::CaseRecord>& records);

}  // namespace assay::host::results
