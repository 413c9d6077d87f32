// Some of the measured steps once more, with communication left out (assay.silence/1): what is left is what the ranks
// do without one another.
#pragma once
#include <assay/abi.h>

#include "measure/loop.hpp"
#include "record/case_record.hpp"

#include <functional>
#include <span>

namespace assay::host::worker {

// Null where the workload cannot leave it out.
const assay_silence* silence_of(const assay_workload& workload, const assay_workload_self* object);

// Takes as many steps as were measured, but no longer than a few seconds, on the same clock and in the same way.
// `measured_ns`: the times of the measured steps. `run_step` enqueues one; `between` is called after each.
record::SilentPass silent_pass(measure::Timeline& timeline, measure::Recorder& recorder, measure::MeasurePlan plan,
                               std::span<const double> measured_ns,
                               const std::function<void(std::uint64_t step)>& run_step,
                               const std::function<void()>& between);

}  // namespace assay::host::worker
