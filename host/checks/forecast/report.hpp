// A forecast for people and for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "forecast/forecast.hpp"
#include "results/table.hpp"

namespace assay::host::forecast {

// Memory in MiB, times in ms. `largest`: the parameter whose largest value was asked for, or "".
results::Table table_of(const Forecast& forecast, const std::string& largest);
// The lines below the table: the device, node-hours, disk, what is left out and why.
std::string below_table(const Forecast& forecast);
nlohmann::ordered_json to_json(const Forecast& forecast, const std::string& experiment, const std::string& largest);

// "planned", "refused", ...
const char* name_of(WalkState state);

}  // namespace assay::host::forecast
