// Some of the measured steps once more, with communication left out (assay.silence/1): what is left is what the ranks
// do without one another.
#pragma once
#include <assay/abi.h>

#include "measure/loop.hpp"
#include "record/case_record.hpp"

#include <functional>

namespace assay::host::worker {

// Null where the workload cannot leave it out.
const assay_silence* silence_of(const assay_workload& workload, const assay_workload_self* object);

struct SilentHooks {
  std::function<void(std::uint64_t step)> run_step;  // enqueues one
  std::function<void()> after_step;
  std::function<void()> flush_caches;  // before each sample, as before the measured ones; or empty
};

// Takes as many samples as were measured, but no longer than a few seconds, on the same clock and in the same way: of
// as many steps each, after caches of the same state.
record::SilentPass silent_pass(measure::Timeline& timeline, measure::Recorder& recorder, measure::MeasurePlan plan,
                               const measure::LoopResult& measured, const SilentHooks& hooks);

}  // namespace assay::host::worker
