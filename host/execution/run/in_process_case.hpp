// One case in this process, for a debugger: a crash ends the run.
#pragma once
#include "record/case_record.hpp"
#include "run/stage_progress.hpp"
#include "worker/case_spec.hpp"

namespace assay::host::run {

record::CaseResult run_in_this_process(const worker::CaseSpec& spec, const StageProgress& on_progress);

}  // namespace assay::host::run
