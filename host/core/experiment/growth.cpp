#include "experiment/growth.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "experiment/settings.hpp"

namespace assay::host::experiment {
namespace {

constexpr std::string_view params = "workload.params.";

struct Resolved {
  std::map<std::string, std::string> values;  // by dotted name, spelt as TOML
  std::set<std::string> axes;
};

std::string spelt(const toml::node& node) {
  std::ostringstream out;
  node.visit([&out](const auto& value) { out << value; });
  return out.str();
}

void add_values(const toml::table& table, const std::string& prefix, Resolved& out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table(); inner && !inner->is_inline())
      add_values(*inner, name + ".", out);
    else
      out.values[name] = spelt(node);
  }
}

void add_axes(const toml::table& sweep, Resolved& out) {
  for (const auto& [key, node] : sweep) {
    if (key.str() == "exclude") continue;
    const auto* zipped = key.str() == "zip" ? node.as_array() : nullptr;
    if (!zipped) {
      out.axes.insert(std::string(key.str()));
      continue;
    }
    for (const toml::node& each : *zipped)
      if (const auto* axis = each.as_table())
        for (const auto& [name, values] : *axis) out.axes.insert(std::string(name.str()));
  }
}

Resolved read(const std::string& text, const char* whose) try {
  toml::table table = toml::parse(text);
  Resolved resolved;
  if (const auto* sweep = table["sweep"].as_table()) add_axes(*sweep, resolved);
  for (const char* key : {"schema", "name", "description", "sweep"}) table.erase(key);
  add_values(table, "", resolved);
  return resolved;
} catch (const toml::parse_error& e) {
  throw std::invalid_argument(fmt::format("the experiment {} does not parse: {} (line {})", whose,
                                          std::string(e.description()), e.source().begin.line));
}

const Setting* setting_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? nullptr : find_in_section(name.substr(0, dot), name.substr(dot + 1));
}

bool changes_no_figure(const std::string& name) {
  if (name.starts_with("output.")) return true;
  const Setting* setting = setting_of(name);
  return setting && setting->identity == Identity::ignored;
}

// What it means if a file does not state the setting; nothing if it is then not set.
std::optional<std::string> unsaid(const std::string& name) {
  const Setting* setting = setting_of(name);
  if (!setting || setting->is_list || setting->is_table || !setting->initial) return std::nullopt;
  const Value& value = setting->initial->front();
  return std::visit([](const auto& v) { return spelt(toml::value(v)); }, value);
}

// As an axis names it: a parameter by its own name.
std::string axis_name(const std::string& name) { return name.starts_with(params) ? name.substr(params.size()) : name; }

std::string text_of(const Resolved& resolved, const std::string& name) {
  if (resolved.axes.contains(axis_name(name))) return "swept";  // the file may have its own value beside the axis
  if (const auto found = resolved.values.find(name); found != resolved.values.end()) return found->second;
  return unsaid(name).value_or("not set");
}

}  // namespace

std::vector<std::string> differences_but_growth(const std::string& of_run, const std::string& now) {
  const Resolved before = read(of_run, "of the run"), after = read(now, "as it is now");
  std::set<std::string> names;
  for (const Resolved* each : {&before, &after}) {
    for (const auto& [name, text] : each->values) names.insert(name);
    for (const std::string& axis : each->axes) names.insert(setting_of(axis) ? axis : std::string(params) + axis);
  }
  std::vector<std::string> lines;
  for (const std::string& name : names) {
    if (changes_no_figure(name)) continue;
    const std::string was = text_of(before, name), is = text_of(after, name);
    if (was != is) lines.push_back(fmt::format("{}: {} in the run, {} now", name, was, is));
  }
  return lines;
}

}  // namespace assay::host::experiment
