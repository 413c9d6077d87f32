// Presets, the meaning of a workload's choices: `size = "small"` has a width, a depth and heads.
#pragma once
#include "experiment/experiment.hpp"

#include <string>
#include <string_view>

namespace assay::host::experiment {

// Gives each parameter that the workload's presets decide its value, where the experiment gives it none and no preset
// has yet. A preset for one kind of device counts when `device_kind` is that kind; "" is not known yet.
void apply_presets(const plugin::WorkloadSchema& schema, std::string_view device_kind, Case& into);

// True for a parameter that a preset may decide.
bool is_preset(const plugin::WorkloadSchema& schema, const std::string& param);

}  // namespace assay::host::experiment
