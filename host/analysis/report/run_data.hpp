// A page's text on a run as a whole: what ran, on what, when, with which code, and what its cases were set to.
#pragma once
#include "report/rounded.hpp"
#include "report/runs.hpp"

namespace assay::host::report {

// {"label", "name", "path", "experiment", "facts": [[key, text]], "same": [[key, text]], "checks": [...], "notes":
// [...]}
Json run_json(const ReportedRun& run);

}  // namespace assay::host::report
