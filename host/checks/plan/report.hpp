// A plan for people and for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "results/table.hpp"

namespace assay::host::plan {

// Memory in MiB, times in ms. `largest`: the parameter whose largest value was asked for, or "".
results::Table table_of(const CasesPlan& plan, const std::string& largest);
// The lines below the table: the device, node-hours, disk, what is left out and why.
std::string below_table(const CasesPlan& plan);
nlohmann::ordered_json to_json(const CasesPlan& plan, const std::string& experiment, const std::string& largest);

// "planned", "refused", ...
const char* name_of(WalkState state);

}  // namespace assay::host::plan
