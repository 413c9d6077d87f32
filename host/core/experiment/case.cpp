#include "experiment/experiment.hpp"
#include "experiment/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::host::experiment {

std::map<std::string, Value> Case::settings() const {
  std::map<std::string, Value> result;
  for (const auto& setting : settings_table())
    if (auto value = setting.read(*this)) result.emplace(setting.name, std::move(*value));
  return result;
}

std::map<std::string, std::vector<Value>> Case::list_settings() const {
  std::map<std::string, std::vector<Value>> result;
  for (const auto& setting : all_settings())
    if (setting.is_list_of_case())
      if (auto values = setting.read_list(*this)) result.emplace(setting.name, std::move(*values));
  return result;
}

std::optional<Value> Case::find(const std::string& key) const {
  const auto axis = std::find_if(axes.begin(), axes.end(), [&](const auto& entry) { return entry.first == key; });
  if (axis != axes.end()) return axis->second;
  if (const auto param = params.find(key); param != params.end()) return param->second;
  const Setting* setting = find_setting(key);
  return setting ? setting->read(*this) : std::nullopt;
}

std::string repeat_suffix(const std::optional<std::int64_t>& repeat) {
  return repeat.value_or(1) == 1 ? "" : fmt::format(".repeat{}", *repeat);
}

}  // namespace assay::host::experiment
