// One case in this process, for a debugger: a crash ends the run.
#pragma once
#include "record/case_record.hpp"
#include "run/stage_progress.hpp"
#include "worker/case_spec.hpp"

namespace assay::host {

record::CaseResult run_in_this_process(const CaseSpec& spec, const StageProgress& on_progress);

}  // namespace assay::host
