// Whether the figures of a measured window may be taken for the device's own: nobody else used it, nothing held it
// back.
#pragma once
#include "record/case_record.hpp"
#include "telemetry/contention.hpp"
#include "telemetry/telemetry_figures.hpp"

namespace assay::host::telemetry {

// From this share of the samples on a reason that holds the clocks down counts.
inline constexpr double throttled_share = 0.05;

// On the CPU (`is_cpu`) the processors are the device, and `contention` decides; on others what `figures` tell, null
// where the device tells nothing.
record::Validity validity_of(bool is_cpu, const TelemetryFigures* figures, const Contention& contention);

}  // namespace assay::host::telemetry
