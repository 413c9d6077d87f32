#include "measure/stopping.hpp"

#include "measure/correlation.hpp"
#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace assay::host::measure {
namespace {

constexpr double growth_between_looks = 1.25;

bool is_known(const StoppingRule& rule, std::span<const double> samples) {
  const Correlation correlation = correlation_of(samples);
  return correlation.effective_n >= fewest_independent &&
         relative_error(samples, correlation, rule.confidence) <= rule.relative_error;
}

}  // namespace

Verdict judge(const MeasurePlan& plan, std::span<const double> step_samples_ns, std::int64_t inner) {
  const auto n = static_cast<std::int64_t>(step_samples_ns.size());
  if (n < plan.fewest_steps()) return Verdict::go_on;
  if (plan.until) {
    if (is_known(*plan.until, step_samples_ns)) return Verdict::enough;
    return n >= plan.most_steps() ? Verdict::gave_up : Verdict::go_on;
  }
  if (n >= plan.most_steps()) return Verdict::enough;
  const double sum_ns = std::accumulate(step_samples_ns.begin(), step_samples_ns.end(), 0.0);
  const double measured_s = sum_ns * static_cast<double>(inner) * 1e-9;
  return measured_s >= DefaultLength::enough_s ? Verdict::enough : Verdict::go_on;
}

std::int64_t next_look(const MeasurePlan& plan, std::int64_t done) {
  const auto grown = static_cast<std::int64_t>(std::ceil(static_cast<double>(done) * growth_between_looks));
  return std::min(plan.most_steps(), std::max({plan.fewest_steps(), done + 1, grown}));
}

}  // namespace assay::host::measure
