// Runs one case from loading its plugin to destroying its object.
#pragma once
#include "worker/answer.hpp"
#include "worker/case_spec.hpp"
#include "worker/observer.hpp"

namespace assay::host::worker {

// Never throws: whatever the plugin or the device reports becomes a status. What it cannot survive (a signal, an exit)
// is the supervisor's business.
CaseAnswer run_case(const CaseSpec& spec, CaseObserver& observer);

}  // namespace assay::host::worker
