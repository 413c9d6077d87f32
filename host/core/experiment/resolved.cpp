#include "experiment/resolved.hpp"

#include "experiment/document.hpp"
#include "experiment/model_files.hpp"
#include "experiment/presets.hpp"
#include "experiment/settings.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace assay::host::experiment {
namespace {

// Strings and keys go through toml++, one at a time: a whole toml::table would sort the axes by name.
constexpr auto plain_flags = toml::toml_formatter::default_flags & ~toml::format_flags::allow_multi_line_strings &
                             ~toml::format_flags::allow_literal_strings;

std::string written(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return toml_text(*text);
  return shown(value);
}

std::string written_key(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? key : toml_text(key);
}

class Writer {
 public:
  void table(const std::string& name) { text_ += fmt::format("\n[{}]\n", name); }
  void table_in_array(const std::string& name) { text_ += fmt::format("\n[[{}]]\n", name); }
  void put(const std::string& key, const Value& value) {
    text_ += fmt::format("{} = {}\n", written_key(key), written(value));
  }
  void put(const std::string& key, const std::vector<Value>& values) {
    std::string list;
    for (const auto& value : values) list += (list.empty() ? "" : ", ") + written(value);
    text_ += fmt::format("{} = [{}]\n", written_key(key), list);
  }
  // The keys and values take turns.
  void put_table(const std::string& key, const std::vector<Value>& values) {
    std::string members;
    for (std::size_t i = 0; i + 1 < values.size(); i += 2)
      members += fmt::format("{}{} = {}", members.empty() ? "" : ", ", written_key(std::get<std::string>(values[i])),
                             written(values[i + 1]));
    text_ += fmt::format("{} = {{ {} }}\n", written_key(key), members);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// The settings of one section that have a value, single ones before lists and tables. A section without any is left
// out.
void put_section(Writer& out, const std::string& section, const Case& base, const OutputSettings& output) {
  bool begun = false;
  for (const bool lists : {false, true})
    for (const auto& setting : all_settings()) {
      if (setting.section != section || (setting.is_list || setting.is_table) != lists) continue;
      const auto values = setting.read(base, output);
      if (!values) continue;
      if (!std::exchange(begun, true)) out.table(section);
      if (setting.is_table)
        out.put_table(setting.key, *values);
      else if (lists)
        out.put(setting.key, *values);
      else
        out.put(setting.key, values->at(0));
    }
}

void put_axis(Writer& out, const Axis& axis) {
  for (std::size_t k = 0; k < axis.keys.size(); ++k) {
    std::vector<Value> values;
    for (const auto& row : axis.rows) values.push_back(row[k]);
    out.put(axis.keys[k], values);
  }
}

void put_sweep(Writer& out, const SweepPlan& plan) {
  const auto zipped = [](const Axis& axis) { return axis.zipped; };
  if (!std::all_of(plan.axes.begin(), plan.axes.end(), zipped)) out.table("sweep");
  for (const auto& axis : plan.axes) {
    if (axis.zipped) out.table_in_array("sweep.zip");
    put_axis(out, axis);
  }
  for (const auto& exclusion : plan.exclusions) {
    out.table_in_array("sweep.exclude");
    for (const auto& [key, value] : exclusion) out.put(key, value);
  }
}

}  // namespace

std::string toml_text(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter{toml::value<std::string>(text), plain_flags};
  return out.str();
}

std::string resolved_toml(const Experiment& experiment, const Case& base, const SweepPlan& plan,
                          const plugin::WorkloadSchema& schema) {
  Writer out;
  out.put("schema", Value(experiment.schema));
  out.put("name", Value(experiment.name));
  if (!experiment.description.empty()) out.put("description", Value(experiment.description));
  out.table("workload");
  out.put("plugin", Value(experiment.plugin));
  out.table("workload.params");
  for (const auto& spec : schema.params) {
    if (plan.sweeps(spec.name)) continue;
    const Value& value = base.params.at(spec.name);
    // Left to its preset, so that another size in this file, or by --set, has its own dimensions.
    if (!base.given_params.contains(spec.name) &&
        (is_preset(schema, spec.name) || is_decided_by_file(schema, base, spec.name) ||
         (plan.sweeps(model_file_param) && is_of_model_configuration(spec.name))))
      continue;
    const auto from = base.params_from.find(spec.name);
    out.put(spec.name, from == base.params_from.end() ? value : Value("{" + from->second + "}"));
  }
  put_sweep(out, plan);
  for (const auto& section : setting_sections()) put_section(out, section, base, experiment.output);
  return out.take();
}

}  // namespace assay::host::experiment
