// The forecast as tables for people and JSON for programs, each with its assumptions.
#pragma once
#include "forecast/step_forecast.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace assay::host::forecast {

struct FamilyForecast {
  const StepFamily* family = nullptr;
  std::set<int> from;
  std::vector<StepForecast> forecasts;
  Assumptions assumptions;
};

using Wires = std::map<Link, std::vector<Wire>>;

std::string text_of(const std::vector<FamilyForecast>& families, const Wires& wires, std::size_t width_columns);
std::string json_of(const std::vector<FamilyForecast>& families, const Wires& wires);

}  // namespace assay::host::forecast
