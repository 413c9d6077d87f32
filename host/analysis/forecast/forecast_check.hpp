// The forecast against what is known: each measured number of ranks is forecast from the smaller ones alone.
#pragma once
#include "forecast/family_forecast.hpp"

#include <string>
#include <vector>

namespace assay::host::forecast {

struct CheckedForecast {
  std::string label;
  std::set<int> from;
  std::string doubts, wires_of;
  StepForecast forecast;  // with what was measured
  double off_percent() const { return (forecast.step_s / *forecast.measured_s - 1) * 100; }
};

struct Check {
  std::vector<CheckedForecast> rows;  // by family and number of ranks
  std::set<std::string> left_out;     // "CASE: why"
  double worst_percent() const;       // the largest difference, without its sign
};
// Neither steps nor collectives on as many ranks, or on more, count. `allowed`: as in Question.
Check check_of(const std::vector<ObservedCase>& cases, const std::vector<StepFamily>& families,
               const std::set<int>& allowed);

std::string text_of(const Check& check, std::size_t width_columns);
std::string json_of(const Check& check);

}  // namespace assay::host::forecast
