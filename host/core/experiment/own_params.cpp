#include "experiment/own_params.hpp"

#include <assay/plugin/reserved_names.hpp>

#include <algorithm>
#include <cctype>

#include "common/suggest.hpp"
#include "experiment/overrides.hpp"

namespace assay::host::experiment {
namespace {

using Rows = std::vector<plugin::ParamSpec>;

bool has_row(const Rows& rows, std::string_view name) {
  return std::any_of(rows.begin(), rows.end(), [&](const plugin::ParamSpec& row) { return row.name == name; });
}

plugin::ParamType type_of(const Value& value) {
  if (std::holds_alternative<bool>(value)) return plugin::ParamType::boolean;
  if (std::holds_alternative<std::int64_t>(value)) return plugin::ParamType::integer;
  if (std::holds_alternative<double>(value)) return plugin::ParamType::real;
  return plugin::ParamType::text;
}

// The scalars that stand for the key: its value, the elements of its axis, or the numbers of its range.
std::vector<Value> values_of(const Node& node) {
  std::vector<Value> values;
  if (node.kind == Node::Kind::scalar) values.push_back(node.value);
  for (const Node& element : node.elements)
    if (element.kind == Node::Kind::scalar) values.push_back(element.value);
  for (const TableMember& member : node.members)
    if (member.node.kind == Node::Kind::scalar) values.push_back(member.node.value);
  return values;
}

class OwnParams {
 public:
  explicit OwnParams(const plugin::WorkloadSchema& schema) : schema_(schema) {}

  void add_all(const Node& table) {
    for (const TableMember& member : table.members) add(plain_key(member.key), member.node);
  }
  Rows take() { return std::move(rows_); }

 private:
  void add(const std::string& name, const Node& node) {
    if (has_row(schema_.params, name) || has_row(rows_, name) || !can_be_own_param(schema_, name)) return;
    const std::vector<Value> values = values_of(node);
    if (values.empty()) return;
    plugin::ParamSpec row;
    row.name = name;
    row.type = type_of(values.front());
    // Whole numbers among others: all of them are numbers.
    const auto is_real = [](const Value& value) { return std::holds_alternative<double>(value); };
    if (row.type == plugin::ParamType::integer && std::any_of(values.begin(), values.end(), is_real))
      row.type = plugin::ParamType::real;
    row.required = true;
    rows_.push_back(std::move(row));
  }

  const plugin::WorkloadSchema& schema_;
  Rows rows_;
};

}  // namespace

bool can_be_own_param(const plugin::WorkloadSchema& schema, std::string_view name) {
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_letter) || is_layout_key(name) ||
      assay::is_reserved_name(name))
    return false;
  std::vector<std::string> known;
  for (const plugin::ParamSpec& row : schema.params) known.push_back(row.name);
  return !nearest(name, known);
}

std::vector<plugin::ParamSpec> own_params(const Node& root, const plugin::WorkloadSchema& schema) {
  OwnParams own(schema);
  if (!schema.is_open) return {};
  const TableMember* workload = root.find("workload");
  if (const TableMember* params = workload ? workload->node.find("params") : nullptr) own.add_all(params->node);
  if (const TableMember* sweep = root.find("sweep")) {
    for (const TableMember& member : sweep->node.members)
      if (member.key == "zip")
        for (const Node& group : member.node.elements) own.add_all(group);
    Node axes = sweep->node;
    std::erase_if(axes.members, [](const TableMember& m) { return m.key == "zip" || m.key == "exclude"; });
    own.add_all(axes);
  }
  return own.take();
}

}  // namespace assay::host::experiment
