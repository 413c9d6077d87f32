// From samples to the figures of a record (docs/record.md), for one rank's samples and for those of several merged.
#pragma once
#include "record/case_record.hpp"

#include <span>
#include <string>
#include <vector>

namespace assay::host::record {

// A phase, or the step: statistics, the samples, and the phase's share of the step.
Phase phase_figures(std::span<const double> samples_ms, double host_mean_ms, double step_mean_ms, double confidence);

// Sets the figures of a metric that is reported in each step; its unit and direction stay. `samples` is not empty.
void set_metric_figures(StepMetric& metric, std::span<const double> samples, double confidence);

// Work over time; an amount of 0 has no rate. A step without a length has rates that are not finite.
Rates rate_figures(double flops, double bytes, double items, double step_mean_ms);

// What a careful reader should know of these times of a step: a wide spread, a drift.
std::vector<std::string> steadiness_notes(std::span<const double> step_ms);

}  // namespace assay::host::record
