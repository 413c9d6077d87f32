// The settings of a case that are not parameters of its workload: [measure], [run] and [profile].
#pragma once
#include "experiment/experiment.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host {

struct Setting {
  std::string name;                  // "measure.warmup"
  std::string expected;              // "an integer >= 0 (default 5)"
  std::vector<std::string> choices;  // words it takes, for a suggestion
  // Stores `found` in the case and returns it in its one written form ("600s" becomes "10m"); nothing, and an untouched
  // case, when `found` is not what is expected.
  std::function<std::optional<Value>(const Value& found, Case&)> apply;
  std::function<std::optional<Value>(const Case&)> read;  // nothing when the case has none
};

// In the order in which a resolved file lists them.
const std::vector<Setting>& settings_table();
const Setting* find_setting(std::string_view name);
std::vector<std::string> setting_names();

}  // namespace assay::host
