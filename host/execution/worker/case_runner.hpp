// Runs one case from loading its plugin to destroying its object.
#pragma once
#include <functional>

#include "worker/answer.hpp"
#include "worker/case_spec.hpp"
#include "worker/observer.hpp"

namespace assay::host::worker {

// Whatever the plugin or the device reports becomes a status of the answer, which is given before the object is
// destroyed: a crash or a hang there takes nothing away. What the case cannot survive (a signal, an exit) is the
// supervisor's business. Throws what `give` throws, and nothing else.
CaseTeardown run_case(const CaseSpec& spec, CaseObserver& observer,
                      const std::function<void(const CaseAnswer& answer)>& give);

}  // namespace assay::host::worker
