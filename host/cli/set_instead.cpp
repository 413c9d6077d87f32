#include "cli/set_instead.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>

#include "common/synonyms.hpp"
#include "experiment/parse.hpp"
#include "experiment/settings.hpp"
#include "experiment/vocabulary.hpp"
#include "plugin/search.hpp"
#include "run/target.hpp"

namespace assay::host::cli {
namespace {

namespace fs = std::filesystem;

bool is_experiment_file(const std::string& argument) {
  std::error_code ignored;
  return argument.ends_with(".toml") && fs::is_regular_file(argument, ignored);
}

Arguments values_of(const Arguments& arguments, const std::string& option) {
  Arguments values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size()) values.push_back(arguments[i + 1]);
    if (arguments[i].starts_with(option + "=")) values.push_back(arguments[i].substr(option.size() + 1));
  }
  return values;
}

// Of the experiment's workload; nothing where it cannot be told.
std::optional<plugin::WorkloadSchema> schema_of_workload(const Arguments& arguments) {
  const auto file = std::find_if(arguments.begin(), arguments.end(), is_experiment_file);
  if (file == arguments.end()) return std::nullopt;
  const std::optional<std::string> plugin = experiment::ExperimentFile::read(*file).plugin();
  if (!plugin) return std::nullopt;
  try {
    const fs::path parent = fs::path(*file).parent_path();
    return run::open_target(plugin::find_workload(*plugin,
                                                  plugin::plugin_folders(values_of(arguments, "--plugin-path")),
                                                  parent.empty() ? "." : parent))
        .schema;
  } catch (const std::exception&) {
    return std::nullopt;  // a command line without mistakes gets to hear what is wrong with the plugin
  }
}

// What stands after the option, if that is a value: "16" of "--nhead 16", "--nhead=16".
std::optional<std::string> value_after(const Arguments& arguments, const std::string& option) {
  const Arguments values = values_of(arguments, option);
  if (values.empty() || values.front().starts_with("--") || values.front().ends_with(".toml")) return std::nullopt;
  return values.front();
}

std::string without_dashes(const std::string& option) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// "one of auto, fp16, bf16, off (default auto)", or "" of a key that nobody knows.
std::string taken_by(const experiment::Vocabulary& vocabulary, const std::string& key) {
  if (const plugin::ParamSpec* param = vocabulary.param(key)) return experiment::expectation(*param);
  const experiment::Setting* setting = experiment::find_setting(key);
  return setting ? setting->expected : "";
}

}  // namespace

std::string set_instead(const Arguments& arguments, const std::string& option) {
  const std::optional<plugin::WorkloadSchema> schema = schema_of_workload(arguments);
  const experiment::Vocabulary vocabulary(schema ? &*schema : nullptr, {});
  const std::optional<std::string> meant = meant_key(option, vocabulary.names());
  if (!meant && schema)
    return fmt::format("parameters and settings are set with --set KEY=VALUE; none is called '{}'",
                       without_dashes(option));
  const std::string key = meant.value_or(without_dashes(option));
  const std::optional<std::string> value = value_after(arguments, option);
  const std::string taken = value ? "" : taken_by(vocabulary, key);
  return fmt::format("parameters and settings are set with --set: --set {}={}{}", key, value.value_or("VALUE"),
                     taken.empty() ? "" : fmt::format(", {}", taken));
}

}  // namespace assay::host::cli
