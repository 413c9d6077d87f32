// What a workload knows of the work of its steps, and of the most that its device does.
#pragma once
#include <assay/abi.h>

#include "record/case_record.hpp"
#include "worker/host_services.hpp"

#include <optional>
#include <string>

namespace assay::host::worker {

// "bf16"; "" for what is not stated, and for what a newer plugin states.
std::string arithmetic_name(assay_arithmetic arithmetic);

// By trial (assay.peak/1), after everything else. Nothing where the workload offers none, or could not.
std::optional<record::Peak> measured_peak(const assay_workload& workload, assay_workload_self* object,
                                          HostServices& services);

}  // namespace assay::host::worker
