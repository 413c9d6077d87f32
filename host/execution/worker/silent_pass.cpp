#include "worker/silent_pass.hpp"

#include <algorithm>

#include "measure/statistics.hpp"

namespace assay::host::worker {
namespace {

constexpr double longest_pass_s = 5;

}  // namespace

const assay_silence* silence_of(const assay_workload& workload, const assay_workload_self* object) {
  const auto* silence = workload.get_extension
                            ? static_cast<const assay_silence*>(workload.get_extension(object, ASSAY_EXT_SILENCE))
                            : nullptr;
  return silence && ASSAY_HAS(silence, assay_silence, set) ? silence : nullptr;
}

record::SilentPass silent_pass(measure::Timeline& timeline, measure::Recorder& recorder, measure::MeasurePlan plan,
                               const measure::LoopResult& measured, const SilentHooks& silent) {
  const std::vector<double>& measured_ns = measured.samples.step_ns;
  const double sample_s = measure::summarize(measured_ns).mean * 1e-9 * static_cast<double>(measured.inner);
  const auto most = static_cast<double>(measured_ns.size());
  plan.until.reset();
  plan.steps = static_cast<std::int64_t>(std::clamp(longest_pass_s / sample_s, 1.0, most));
  // A step alone is faster: chosen anew, `inner` would be another number, and the samples would not be of one kind.
  plan.inner = measured.inner;
  // The first silent step finds nothing of the others in its way, but the caches as they left them.
  plan.warmup = plan.steps > 2 ? 1 : 0;
  measure::LoopHooks hooks;
  hooks.run_step = [&](std::uint64_t step, bool) { silent.run_step(step); };
  hooks.after_step = [&](bool, std::int64_t, std::int64_t) { silent.after_step(); };
  hooks.prepare_window = [] {};
  hooks.begin_window = [] {};
  hooks.flush_caches = silent.flush_caches;
  const measure::LoopResult result = measure::measure(timeline, recorder, plan, hooks);
  record::SilentPass pass;
  pass.steps = static_cast<std::int64_t>(result.samples.step_ns.size());
  pass.step_mean_ms = measure::summarize(result.samples.step_ns).mean * 1e-6;
  return pass;
}

}  // namespace assay::host::worker
