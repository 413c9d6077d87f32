#include "validate/describe_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/exit_code.hpp"
#include "common/text_format.hpp"
#include "plugin/search.hpp"
#include "results/terminal.hpp"

namespace assay::host::validate {
namespace {

using json = nlohmann::ordered_json;

const char* direction_name(Direction d) {
  return d == Direction::lower_is_better    ? "lower is better"
         : d == Direction::higher_is_better ? "higher is better"
                                            : "";
}

const char* ranks_word(plugin::RanksAre ranks) {
  return ranks == plugin::RanksAre::cooperating ? "cooperating"
         : ranks == plugin::RanksAre::copies    ? "copies"
                                                : "unsaid";
}
const char* ranks_text(plugin::RanksAre ranks) {
  switch (ranks) {
    case plugin::RanksAre::cooperating: return "several work together";
    case plugin::RanksAre::copies: return "one ([run] copies = true runs several independent copies)";
    case plugin::RanksAre::unsaid: break;
  }
  return "unknown: the plugin was built for an ABI before 1.3";
}

json schema_json(const plugin::WorkloadSchema& schema, const plugin::PluginTables& of_plugin) {
  json params = json::array();
  for (const plugin::ParamSpec& p : schema.params) {
    json row = {{"name", p.name}, {"type", name_of(p.type)}, {"unit", p.unit}, {"help", p.help}};
    if (p.required)
      row.emplace("required", true);
    else
      row.emplace("default", host::to_json(p.default_value));
    if (p.min) row.emplace("min", *p.min);
    if (p.max) row.emplace("max", *p.max);
    if (!p.choices.empty()) row.emplace("choices", p.choices);
    if (p.input_path) row.emplace("path", "input");
    if (p.output_path) row.emplace("path", "output");
    if (p.words) row.emplace("words", true);
    params.push_back(std::move(row));
  }
  json metrics = json::array();
  for (const plugin::MetricSpec& m : schema.metrics) {
    metrics.push_back({{"name", m.name},
                       {"unit", m.unit},
                       {"scope", m.per_step ? "step" : "case"},
                       {"direction", static_cast<int>(m.direction)},
                       {"help", m.help}});
    if (!m.words.empty()) metrics.back().emplace("words", m.words);
  }
  json presets = json::array();
  for (const plugin::PresetSpec& p : schema.presets) {
    json when = {{p.when, p.choice}};
    if (!p.also_when.empty()) when.emplace(p.also_when, p.also_choice);
    if (!p.device_kind.empty()) when.emplace("device", p.device_kind);
    presets.push_back({{"when", std::move(when)}, {"param", p.param}, {"value", host::to_json(p.value)}});
  }
  return {{"workload", schema.id},
          {"summary", schema.summary},
          {"plugin", of_plugin.id},
          {"version", of_plugin.version},
          {"build", of_plugin.build},
          {"abi", of_plugin.abi()},
          {"min_host", of_plugin.min_host()},
          {"params", std::move(params)},
          {"phases", schema.phases},
          {"metrics", std::move(metrics)},
          {"items", schema.item_unit},
          {"devices", schema.devices},
          {"verifies", schema.verifies},
          {"presets", std::move(presets)},
          {"starts_cold", schema.starts_cold},
          {"open", schema.is_open},
          {"ranks", ranks_word(schema.ranks)}};
}

std::string number_text(double v) {
  return v == static_cast<double>(static_cast<std::int64_t>(v)) ? fmt::format("{}", static_cast<std::int64_t>(v))
                                                                : fmt::format("{}", v);
}

std::string allowed_text(const plugin::ParamSpec& p) {
  if (!p.choices.empty()) {
    std::string text;
    for (const std::string& c : p.choices) text += (text.empty() ? "" : " | ") + c;
    return text;
  }
  if (p.min && p.max) return number_text(*p.min) + " to " + number_text(*p.max);
  if (p.min) return ">= " + number_text(*p.min);
  if (p.max) return "<= " + number_text(*p.max);
  if (p.words) return "words in one string, or an array of strings";
  return p.input_path ? "existing file" : p.output_path ? "file in the run folder" : "";
}

// A preset holds one choice, such as `size = "small"`, and the values that follow from it.
struct Preset {
  std::string condition;
  std::vector<const plugin::PresetSpec*> values;
};

std::vector<Preset> presets_of(const plugin::WorkloadSchema& schema) {
  std::vector<Preset> presets;
  for (const plugin::PresetSpec& p : schema.presets) {
    std::string condition = fmt::format("{} = {}", p.when, p.choice);
    if (!p.also_when.empty()) condition += fmt::format(", {} = {}", p.also_when, p.also_choice);
    if (!p.device_kind.empty()) condition += fmt::format(", on {}", p.device_kind);
    if (presets.empty() || presets.back().condition != condition) presets.push_back({std::move(condition), {}});
    presets.back().values.push_back(&p);
  }
  return presets;
}

// Broken between words on a terminal; in a pipe each entry is one line, so that it can be searched.
std::size_t width_of_output() { return ::isatty(STDOUT_FILENO) == 1 ? results::terminal_width(STDOUT_FILENO) : 0; }

void print_presets(const plugin::WorkloadSchema& schema, std::size_t width) {
  const std::vector<Preset> presets = presets_of(schema);
  if (presets.empty()) return;
  fmt::print("\nPresets (of parameters that the experiment gives no value)\n");
  std::size_t indent = 0;
  for (const Preset& preset : presets) indent = std::max(indent, preset.condition.size() + 4);
  for (const Preset& preset : presets) {
    std::vector<std::string> values;
    for (const plugin::PresetSpec* value : preset.values)
      values.push_back(fmt::format("{} {}", value->param, to_text(value->value)));
    fmt::print("{}",
               hanging("  " + preset.condition + "  ", fmt::format("{}", fmt::join(values, ", ")), indent, width));
  }
}

std::string default_text(const plugin::ParamSpec& p) {
  const std::string text = p.required ? "required" : to_text(p.default_value);
  return text.empty() ? "\"\"" : text;
}

void print_params(const plugin::WorkloadSchema& schema, std::size_t width) {
  std::size_t name_width = 4, default_width = 7;
  for (const plugin::ParamSpec& p : schema.params) {
    name_width = std::max(name_width, p.name.size());
    default_width = std::max(default_width, default_text(p).size());
  }
  constexpr std::size_t type_width = 6, gap = 2, below = 6;
  std::size_t indent = name_width + type_width + default_width + 4 * gap;
  // Where the columns leave the help less than half of the line, it stands below them.
  const bool is_below = width > 0 && indent > width / 2;
  for (const plugin::ParamSpec& p : schema.params) {
    const std::string allowed = allowed_text(p);
    const std::string head = fmt::format("  {:<{}}  {:<{}}  {:<{}}  ", p.name, name_width, name_of(p.type), type_width,
                                         default_text(p), is_below ? 0 : default_width);
    const std::string help = fmt::format("{}{}{}", p.help, p.unit.empty() ? "" : fmt::format(" [{}]", p.unit),
                                         allowed.empty() ? "" : fmt::format(" ({})", allowed));
    fmt::print("{}", hanging(head, help, is_below ? below : indent, width));
  }
  if (schema.is_open) fmt::print("  and those that an experiment gives it beside these\n");
}

std::string metrics_text(const plugin::WorkloadSchema& schema) {
  std::vector<std::string> metrics;
  for (const plugin::MetricSpec& m : schema.metrics)
    metrics.push_back(fmt::format("{}{} (per {}{}{}{})", m.name, m.unit.empty() ? "" : " [" + m.unit + "]",
                                  m.per_step ? "step" : "case", *direction_name(m.direction) ? ", " : "",
                                  direction_name(m.direction),
                                  m.words.empty() ? "" : fmt::format(": {}", fmt::join(m.words, " | "))));
  if (metrics.empty()) return schema.is_open ? "those that it names while it runs" : "none";
  return fmt::format("{}", fmt::join(metrics, ", "));
}

void print_schema(const plugin::WorkloadSchema& schema, const plugin::PluginTables& of_plugin) {
  constexpr std::size_t label_width = 12;
  const std::size_t width = width_of_output();
  const auto print_fact = [width](const char* label, const std::string& text) {
    fmt::print("{}", hanging(label, text, label_width, width));
  };
  fmt::print("{}", hanging("", fmt::format("{}: {}", schema.id, schema.summary), 0, width));
  fmt::print("{}", hanging("",
                           fmt::format("{} {} ({}), ABI {}, needs a host of {} or newer", of_plugin.id,
                                       of_plugin.version, of_plugin.build, of_plugin.abi(), of_plugin.min_host()),
                           0, width));
  fmt::print("\nParameters\n");
  print_params(schema, width);
  print_presets(schema, width);
  fmt::print("\n");
  std::string phases = "step";
  for (const std::string& phase : schema.phases) phases += ", " + phase;
  if (schema.is_open) phases += ", and those that it names while it runs";
  print_fact("Phases", phases);
  print_fact("Metrics", metrics_text(schema));
  print_fact("Work items", schema.item_unit.empty() ? "none" : schema.item_unit);
  print_fact("Devices", fmt::format("{}", fmt::join(schema.devices, " ")));
  print_fact("Verified", schema.verifies ? "yes: a case that fails verification has no time" : "no");
  print_fact("Cold start", schema.starts_cold ? "yes: measure.prepare = false shows what a first step costs" : "no");
  print_fact("Ranks", ranks_text(schema.ranks));
}

}  // namespace

int describe(const DescribeRequest& request) {
  const auto folders = plugin::plugin_folders(request.plugin_path);
  plugin::FoundWorkload found;
  try {
    found = plugin::find_workload(request.plugin, folders, std::filesystem::current_path());
  } catch (const plugin::PluginError& e) {
    fmt::print(stderr, "assay: {}\n", e.what());
    return exit_usage;
  }
  if (request.json)
    fmt::print("{}\n", schema_json(found.schema, found.tables).dump(2));
  else
    print_schema(found.schema, found.tables);
  return exit_ok;
}

}  // namespace assay::host::validate
