// From samples to the entries of a record (docs/record.md), for one rank's samples and for those of several merged.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace assay::host {

// The entry of a phase, and of the step: statistics, the samples, and the phase's share of the step.
nlohmann::ordered_json phase_figures(std::span<const double> samples_ms, double host_mean_ms, double step_mean_ms,
                                     double confidence);

// The figures of a metric that is reported in each step, without its unit and direction. `samples` is not empty.
nlohmann::ordered_json metric_figures(std::span<const double> samples, double confidence);

// Work over time; of an amount that is 0 there is no rate. A step without a length has rates that are not finite.
nlohmann::ordered_json rate_figures(double flops, double bytes, double items, double step_mean_ms);

// What a careful reader should know of these times of a step: a wide spread, a drift.
std::vector<std::string> steadiness_notes(std::span<const double> step_ms);

}  // namespace assay::host
