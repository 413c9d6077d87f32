// The record of one case as docs/record.md describes it: one line of cases.jsonl.
#pragma once
#include <nlohmann/json.hpp>

namespace assay::host {

// Keys keep their order: axes, metrics and phases read in the order in which the workload declares them.
using Record = nlohmann::ordered_json;

}  // namespace assay::host
