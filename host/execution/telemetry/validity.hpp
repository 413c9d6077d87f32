// Whether the figures of a measured window may be taken for the device's own: nobody else used it, nothing held it
// back.
#pragma once
#include "record/case_record.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/telemetry_figures.hpp"

namespace assay::host::telemetry {

// On the CPU (`is_cpu`) the processors are the device, and `contention` decides; on others `figures` do, null if the
// device reports nothing. `power_limit_w`: the device's cap, for the words.
record::Validity validity_of(bool is_cpu, const TelemetryFigures* figures, const Contention& contention,
                             record::Number power_limit_w = {});

}  // namespace assay::host::telemetry
