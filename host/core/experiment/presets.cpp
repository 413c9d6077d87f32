#include "experiment/presets.hpp"

#include <algorithm>

namespace assay::host::experiment {
namespace {

bool is_open(const plugin::WorkloadSchema& schema, const Case& c, const std::string& param) {
  // Also the default, where it is written.
  if (c.given_params.contains(param)) return false;
  const auto spec = std::find_if(schema.params.begin(), schema.params.end(),
                                 [&](const plugin::ParamSpec& candidate) { return candidate.name == param; });
  return c.params.at(param) == spec->default_value;
}

}  // namespace

void apply_presets(const plugin::WorkloadSchema& schema, std::string_view device_kind, Case& into) {
  for (const plugin::PresetSpec& preset : schema.presets) {
    if (!preset.device_kind.empty() && preset.device_kind != device_kind) continue;
    if (into.params.at(preset.when) != Value(preset.choice)) continue;
    if (!preset.also_when.empty() && into.params.at(preset.also_when) != Value(preset.also_choice)) continue;
    // What stands for the choice itself takes its place, whoever has chosen it.
    if (preset.param == preset.when || is_open(schema, into, preset.param)) into.params[preset.param] = preset.value;
  }
}

bool is_preset(const plugin::WorkloadSchema& schema, const std::string& param) {
  return std::any_of(schema.presets.begin(), schema.presets.end(),
                     [&](const plugin::PresetSpec& preset) { return preset.param == param && preset.when != param; });
}

}  // namespace assay::host::experiment
