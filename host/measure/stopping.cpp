#include "measure/stopping.hpp"

#include "measure/statistics.hpp"

namespace assay::host::measure {

Verdict judge(const MeasurePlan& plan, std::span<const double> step_samples) {
  const auto n = static_cast<std::int64_t>(step_samples.size());
  if (!plan.until) return n >= plan.steps ? Verdict::enough : Verdict::go_on;
  if (n < plan.until->min_steps) return Verdict::go_on;
  if (relative_error(step_samples, plan.until->confidence) <= plan.until->relative_error) return Verdict::enough;
  return n >= plan.until->max_steps ? Verdict::gave_up : Verdict::go_on;
}

}  // namespace assay::host::measure
