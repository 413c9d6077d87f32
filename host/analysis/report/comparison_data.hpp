// A comparison as a page shows it.
#pragma once
#include "report/rounded.hpp"
#include "report/runs.hpp"

namespace assay::host::report {

// {"refusal"} where there is none.
Json comparison_json(const ReportedComparison& compared, const compare::TestOptions& test);

}  // namespace assay::host::report
