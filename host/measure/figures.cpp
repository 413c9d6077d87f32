#include "measure/figures.hpp"

#include "measure/statistics.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace assay::host {
namespace {

using json = nlohmann::ordered_json;

constexpr double unsteady_cv = 0.05;

}  // namespace

json phase_figures(std::span<const double> samples_ms, double host_mean_ms, double step_mean_ms, double confidence) {
  const Statistics s = summarize(samples_ms, confidence);
  return {{"mean_ms", s.mean},
          {"std_ms", s.std},
          {"cv", s.cv},
          {"min_ms", s.min},
          {"max_ms", s.max},
          {"p50_ms", s.p50},
          {"p90_ms", s.p90},
          {"p95_ms", s.p95},
          {"p99_ms", s.p99},
          {"ci_low_ms", s.ci_low},
          {"ci_high_ms", s.ci_high},
          {"confidence", s.confidence},
          {"n", s.n},
          {"samples_ms", std::vector<double>(samples_ms.begin(), samples_ms.end())},
          {"host_mean_ms", host_mean_ms},
          {"share", s.mean / step_mean_ms}};
}

json metric_figures(std::span<const double> samples, double confidence) {
  const Statistics s = summarize(samples, confidence);
  return {{"mean", s.mean},
          {"std", s.std},
          {"min", s.min},
          {"max", s.max},
          {"last", samples.back()},
          {"n", s.n},
          {"samples", std::vector<double>(samples.begin(), samples.end())}};
}

json rate_figures(double flops, double bytes, double items, double step_mean_ms) {
  json out = json::object();
  const double per_second = 1e3 / step_mean_ms;
  if (flops != 0) out["gflop_per_s"] = flops * per_second * 1e-9;
  if (bytes != 0) out["gbytes_per_s"] = bytes * per_second * 1e-9;
  if (items != 0) out["items_per_s"] = items * per_second;
  return out;
}

std::vector<std::string> steadiness_notes(std::span<const double> step_ms) {
  std::vector<std::string> notes;
  const Statistics step = summarize(step_ms);
  if (step.n > 1 && step.cv > unsteady_cv)
    notes.push_back(
        fmt::format("the step time's cv is {:.1f}%, above {:.0f}%: more warm-up, more steps, or a quieter machine",
                    step.cv * 100, unsteady_cv * 100));
  if (const auto d = drift(step_ms); d && std::abs(*d) > unsteady_cv)
    notes.push_back(
        fmt::format("the step time drifts by {:+.1f}% from the first to the last third of the steps", *d * 100));
  return notes;
}

}  // namespace assay::host
