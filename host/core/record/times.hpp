// The times of a result, and what they decide.
#pragma once
#include "record/case_record.hpp"

namespace assay::host::record {

// Takes them out of a result that holds none, whatever was measured: each field that json_fields.hpp marks as measured,
// and metrics of the workload in units of time or rate. How long the stages of the case took stays.
void remove_times(CaseResult& result);

}  // namespace assay::host::record
