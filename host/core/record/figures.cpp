#include "record/figures.hpp"

#include "measure/statistics.hpp"

#include <fmt/format.h>

#include <cmath>

namespace assay::host::record {
namespace {

constexpr double unsteady_cv = 0.05;

}  // namespace

Phase phase_figures(std::span<const double> samples_ms, double host_mean_ms, double step_mean_ms, double confidence) {
  const measure::Statistics s = measure::summarize(samples_ms, confidence);
  Phase phase;
  phase.mean_ms = s.mean, phase.std_ms = s.std, phase.cv = s.cv;
  phase.min_ms = s.min, phase.max_ms = s.max;
  phase.p50_ms = s.p50, phase.p90_ms = s.p90, phase.p95_ms = s.p95, phase.p99_ms = s.p99;
  phase.ci_low_ms = s.ci_low, phase.ci_high_ms = s.ci_high, phase.confidence = s.confidence;
  phase.n = static_cast<std::int64_t>(s.n);
  phase.autocorrelation = s.correlation.lag1, phase.effective_n = s.correlation.effective_n;
  phase.samples_ms.assign(samples_ms.begin(), samples_ms.end());
  phase.host_mean_ms = host_mean_ms;
  phase.share = s.mean / step_mean_ms;
  return phase;
}

void set_metric_figures(StepMetric& metric, std::span<const double> samples, double confidence) {
  const measure::Statistics s = measure::summarize(samples, confidence);
  metric.mean = s.mean, metric.std = s.std, metric.min = s.min, metric.max = s.max;
  metric.last = samples.back();
  metric.n = static_cast<std::int64_t>(s.n);
  metric.samples.assign(samples.begin(), samples.end());
}

Rates rate_figures(double flops, double bytes, double items, double step_mean_ms) {
  Rates rates;
  const double per_second = 1e3 / step_mean_ms;
  if (flops != 0) rates.gflop_per_s = flops * per_second * 1e-9;
  if (bytes != 0) rates.gbytes_per_s = bytes * per_second * 1e-9;
  if (items != 0) rates.items_per_s = items * per_second;
  return rates;
}

std::vector<std::string> steadiness_notes(std::span<const double> step_ms) {
  std::vector<std::string> notes;
  const measure::Statistics step = measure::summarize(step_ms);
  if (step.n > 1 && step.cv > unsteady_cv)
    notes.push_back(
        fmt::format("the step time's cv is {:.1f}%, above {:.0f}%: more warm-up, more steps, or a quieter machine",
                    step.cv * 100, unsteady_cv * 100));
  if (const auto d = measure::drift(step_ms); d && std::abs(*d) > unsteady_cv)
    notes.push_back(fmt::format(
        "the step time drifts by {:+.1f}% of the mean from the first to the last third of the steps", *d * 100));
  return notes;
}

}  // namespace assay::host::record
