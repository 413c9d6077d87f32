#include "console/set_instead.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <optional>

#include "experiment/parse.hpp"
#include "experiment/settings.hpp"
#include "experiment/synonyms.hpp"
#include "experiment/vocabulary.hpp"
#include "plugin/search.hpp"
#include "run/target.hpp"

namespace assay::host::console {
namespace {

namespace fs = std::filesystem;

bool is_experiment_file(const std::string& argument) {
  std::error_code ignored;
  return argument.ends_with(".toml") && fs::is_regular_file(argument, ignored);
}

std::vector<std::string> values_of(const std::vector<std::string>& arguments, const std::string& option) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size()) values.push_back(arguments[i + 1]);
    if (arguments[i].starts_with(option + "=")) values.push_back(arguments[i].substr(option.size() + 1));
  }
  return values;
}

// Of the experiment's workload; nothing if unknown.
std::optional<plugin::WorkloadSchema> schema_of_workload(const std::vector<std::string>& arguments) {
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
std::optional<std::string> value_after(const std::vector<std::string>& arguments, const std::string& option) {
  const std::vector<std::string> values = values_of(arguments, option);
  if (values.empty() || values.front().starts_with("--") || values.front().ends_with(".toml")) return std::nullopt;
  return values.front();
}

// The values after the option, where it takes a list: "128", "256" of "--context_lengths 128 256".
std::vector<std::string> values_after(const std::vector<std::string>& arguments, const std::string& option) {
  const auto given = std::find(arguments.begin(), arguments.end(), option);
  const auto first = given == arguments.end() ? given : given + 1;
  return {first, std::find_if(first, arguments.end(), [](const std::string& argument) {
            return argument.starts_with("--") || argument.ends_with(".toml");
          })};
}

// What a flag of another tool says by standing there, in the words here; "" of one that takes a value.
std::string value_of_switch(const std::string& name, const std::string& key) {
  struct Switch {
    std::string_view name, key, value;
  };
  static constexpr std::array switches{Switch{"no_amp", "amp", "off"},
                                       Switch{"no_amp", "precision", "fp32"},
                                       Switch{"single", "run.ranks", "1"},
                                       Switch{"full", "dataset", "full --set num_samples=0"},
                                       Switch{"disk", "data_dir", "data/samples"},
                                       Switch{"no_sync", "measure.sync", "false"},
                                       Switch{"run_opt", "pass", "train_step"},
                                       Switch{"forward_only", "pass", "forward"},
                                       Switch{"compile", "execution", "graph"},
                                       Switch{"torch_compile", "execution", "graph"},
                                       Switch{"profile_memory", "profile.memory_snapshot", "true"},
                                       Switch{"nsys", "profile.nsys", "true"},
                                       Switch{"ncu", "profile.ncu", "true"}};
  for (const Switch& known : switches)
    if (known.name == name && known.key == key) return std::string(known.value);
  return "";
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

std::string set_instead(const std::vector<std::string>& arguments, const std::string& option) {
  const std::optional<plugin::WorkloadSchema> schema = schema_of_workload(arguments);
  const experiment::Vocabulary vocabulary(schema ? &*schema : nullptr, {});
  const std::optional<std::string> meant = experiment::meant_key(option, vocabulary.names());
  if (!meant && schema)
    return fmt::format("parameters and settings are set with --set KEY=VALUE; none is called '{}'",
                       without_dashes(option));
  const std::string key = meant.value_or(without_dashes(option));
  const std::optional<std::string> value = value_after(arguments, option);
  const std::vector<std::string> several = values_after(arguments, option);
  if (several.size() > 1) {
    const bool are_texts = std::any_of(several.begin(), several.end(), [](const std::string& text) {
      return text.find_first_not_of("0123456789.") != std::string::npos;
    });
    const std::string quote = are_texts ? "\"" : "";
    return fmt::format(
        "parameters and settings are set with --set; several values are an axis: --set 'sweep.{}=[{}{}{}]'", key, quote,
        fmt::join(several, quote + "," + quote), quote);
  }
  if (const std::string of_switch = value_of_switch(without_dashes(option), key); !value && !of_switch.empty())
    return fmt::format("parameters and settings are set with --set: --set {}={}", key, of_switch);
  const std::string taken = value ? "" : taken_by(vocabulary, key);
  return fmt::format("parameters and settings are set with --set: --set {}={}{}", key, value.value_or("VALUE"),
                     taken.empty() ? "" : fmt::format(", {}", taken));
}

}  // namespace assay::host::console
