#include "experiment/overrides.hpp"

#include "experiment/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::host::experiment {
namespace {

constexpr std::string_view params_prefix = "workload.params.";
constexpr std::string_view sweep_prefix = "sweep.";

struct Target {
  std::string key;    // as a person names it, without "workload.params." and "sweep."
  bool axis = false;  // the values of an axis, not one value
};

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const auto dot = path.find('.');
    parts.emplace_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

void erase(Node& table, std::string_view key) {
  std::erase_if(table.members, [&](const TableMember& member) { return member.key == key; });
}

// The table under `key`, made when absent. Null when the file has something else there, which validation will report.
Node* table_under(Node& parent, const std::string& key, const Place& place) {
  TableMember* member = parent.find(key);
  if (!member) {
    Node table;
    table.kind = Node::Kind::table;
    table.place = place;
    parent.members.push_back({key, place, std::move(table)});
    member = &parent.members.back();
  }
  return member->node.is_table() ? &member->node : nullptr;
}

void put(Node& table, const std::string& key, Node value) {
  const Place place = value.place;
  if (TableMember* member = table.find(key))
    *member = {key, place, std::move(value)};
  else
    table.members.push_back({key, place, std::move(value)});
}

void erase_from_zip(Node& sweep, const std::string& key) {
  TableMember* zip = sweep.find("zip");
  if (!zip || !zip->node.is_array()) return;
  for (auto& group : zip->node.elements) erase(group, key);
  std::erase_if(zip->node.elements, [](const Node& group) { return group.is_table() && group.members.empty(); });
  if (zip->node.elements.empty()) erase(sweep, "zip");
}

bool is_swept(const Node& sweep, const std::string& key) {
  if (key == "zip" || key == "exclude") return false;  // parts of [sweep], never axes
  if (sweep.find(key)) return true;
  const TableMember* zip = sweep.find("zip");
  return zip && std::any_of(zip->node.elements.begin(), zip->node.elements.end(),
                            [&](const Node& group) { return group.find(key) != nullptr; });
}

void set_axis(Node& root, const std::string& key, Node value) {
  Node* sweep = table_under(root, "sweep", value.place);
  if (!sweep) return;
  if (TableMember* workload = root.find("workload"))
    if (TableMember* params = workload->node.find("params")) erase(params->node, key);
  erase_from_zip(*sweep, key);
  put(*sweep, key, std::move(value));
}

// A fixed count of steps and a stopping rule exclude each other: the one that is set now displaces the file's.
void erase_displaced(Node& root, std::string_view key) {
  TableMember* measure = root.find("measure");
  if (!measure) return;
  if (key == "measure.steps") erase(measure->node, "until");
  if (key == "measure.until" || key.starts_with("measure.until.")) erase(measure->node, "steps");
}

void set_setting(Node& root, const std::string& key, Node value) {
  erase_displaced(root, key);
  const auto path = split(key);
  Node* table = &root;
  for (std::size_t i = 0; i + 1 < path.size() && table; ++i) table = table_under(*table, path[i], value.place);
  if (table) put(*table, path.back(), std::move(value));
}

void apply(Node& root, const Target& target, Node value) {
  if (target.axis) return set_axis(root, target.key, std::move(value));
  if (TableMember* sweep = root.find("sweep"); sweep && is_swept(sweep->node, target.key)) {
    Node axis;
    axis.kind = Node::Kind::array;
    axis.place = value.place;
    axis.elements.push_back(std::move(value));
    return set_axis(root, target.key, std::move(axis));
  }
  if (is_layout_key(target.key)) return set_setting(root, target.key, std::move(value));
  Node* workload = table_under(root, "workload", value.place);
  Node* params = workload ? table_under(*workload, "params", value.place) : nullptr;
  if (params) put(*params, target.key, std::move(value));
}

Target target_of(std::string_view key) {
  if (!key.starts_with(sweep_prefix)) return {plain_key(key), false};
  key.remove_prefix(sweep_prefix.size());
  if (key == "zip" || key == "exclude") return {std::string("sweep.") + std::string(key), false};
  if (key.size() >= 2 && (key.front() == '"' || key.front() == '\'') && key.back() == key.front())
    key = key.substr(1, key.size() - 2);
  return {plain_key(key), true};
}

}  // namespace

std::string plain_key(std::string_view key) {
  return std::string(key.starts_with(params_prefix) ? key.substr(params_prefix.size()) : key);
}

std::vector<std::string> own_keys() { return {"schema", "name", "description"}; }

std::vector<std::string> top_sections() {
  std::vector<std::string> sections{"workload", "sweep"};
  for (const auto& section : setting_sections())
    if (!is_in_another(section)) sections.push_back(section);
  return sections;
}

bool is_layout_key(std::string_view key) {
  const auto sections = top_sections();
  const auto own = own_keys();
  const auto first = key.substr(0, key.find('.'));
  return std::find(sections.begin(), sections.end(), first) != sections.end() ||
         std::find(own.begin(), own.end(), key) != own.end();
}

std::set<std::string> apply_overrides(Node& root, const std::vector<std::string>& arguments, Mistakes& mistakes) {
  std::set<std::string> set_keys;
  int position = 0;
  for (const auto& argument : arguments) {
    const Place place{"--set " + argument, 0, ++position};
    const auto equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    if (equals == std::string::npos || key.empty() || key.front() == '.' || key.back() == '.') {
      mistakes.add(place, "no key and value; expected key=value, as in batch_size=2 or measure.steps=3");
      continue;
    }
    const Target target = target_of(key);
    if (!set_keys.insert(target.key).second) {
      mistakes.add(place, fmt::format("'{}' is set a second time; expected each key once", target.key));
      continue;
    }
    auto value = parse_argument(std::string_view(argument).substr(equals + 1), place, mistakes);
    if (value) apply(root, target, std::move(*value));
  }
  return set_keys;
}

}  // namespace assay::host::experiment
