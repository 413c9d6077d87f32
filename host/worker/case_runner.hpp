// Runs one case from loading its plugin to destroying its object.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "worker/case_spec.hpp"
#include "worker/observer.hpp"

namespace assay::host {

// The worker's part of the record (docs/record.md): status, reason, stage, phase, device, metrics, phases, work, rates,
// memory, verify, notes. Never throws: whatever the plugin or the device reports becomes a status. What it cannot
// survive (a signal, an exit) is the supervisor's business. A failure that may be another rank's doing has
// "of_another_rank": true.
nlohmann::ordered_json run_case(const CaseSpec& spec, CaseObserver& observer);

}  // namespace assay::host
