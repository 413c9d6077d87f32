// The forecast as tables for people and JSON for programs, each with its assumptions.
#pragma once
#include "forecast/family_forecast.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::host::forecast {

std::string text_of(const std::vector<FamilyForecast>& families, const Wires& wires, std::size_t width_columns);
std::string json_of(const std::vector<FamilyForecast>& families, const Wires& wires);

}  // namespace assay::host::forecast
