#include "plugin/plugin_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/device_kinds.hpp"
#include "plugin/device_words.hpp"
#include "plugin/entry_check.hpp"

namespace assay::host::plugin {
namespace {

using Json = nlohmann::json;

// JSON has no infinite numbers and not all digits.
std::string exact(double number) { return fmt::format("{:a}", number); }
double exact(const Json& text) { return std::strtod(text.get_ref<const std::string&>().c_str(), nullptr); }

Json value_json(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return {{"real", exact(*number)}};
  return to_json(value);
}
Value value_of(const Json& json) {
  if (json.is_object()) return exact(json.at("real"));
  return value_from_json(json);
}

Json bound_json(const std::optional<double>& bound) { return bound ? Json(exact(*bound)) : Json(); }
std::optional<double> bound_of(const Json& json) { return json.is_null() ? std::nullopt : std::optional(exact(json)); }

// Rows are arrays, in the order of the struct's members.
Json row_of(const ParamSpec& p) {
  return {p.name,
          p.unit,
          p.help,
          static_cast<int>(p.type),
          value_json(p.default_value),
          p.required,
          bound_json(p.min),
          bound_json(p.max),
          p.choices,
          p.input_path,
          p.output_path,
          p.words};
}
ParamSpec param_of(const Json& row) {
  return {row.at(0),           row.at(1), row.at(2),           static_cast<ParamType>(row.at(3).get<int>()),
          value_of(row.at(4)), row.at(5), bound_of(row.at(6)), bound_of(row.at(7)),
          row.at(8),           row.at(9), row.at(10),          row.at(11)};
}

Json row_of(const MetricSpec& m) {
  return {m.name, m.unit, m.help, static_cast<int>(m.direction), m.per_step, m.words};
}
MetricSpec metric_of(const Json& row) {
  return {row.at(0), row.at(1), row.at(2), static_cast<Direction>(row.at(3).get<int>()), row.at(4), row.at(5)};
}

Json row_of(const PresetSpec& p) {
  return {p.when, p.choice, p.also_when, p.also_choice, p.device_kind, p.param, value_json(p.value)};
}
PresetSpec preset_of(const Json& row) {
  return {row.at(0), row.at(1), row.at(2), row.at(3), row.at(4), row.at(5), value_of(row.at(6))};
}

Json row_of(const WorkloadSchema& w);

template <class Row>
Json rows_of(const std::vector<Row>& table) {
  Json rows = Json::array();
  for (const Row& row : table) rows.push_back(row_of(row));
  return rows;
}
template <class Row>
std::vector<Row> table_of(const Json& rows, Row (*row_from)(const Json&)) {
  std::vector<Row> table;
  for (const Json& row : rows) table.push_back(row_from(row));
  return table;
}

Json row_of(const WorkloadSchema& w) {
  Json json{{"id", w.id},
            {"summary", w.summary},
            {"item_unit", w.item_unit},
            {"params", rows_of(w.params)},
            {"metrics", rows_of(w.metrics)},
            {"phases", w.phases},
            {"presets", rows_of(w.presets)},
            {"verifies", w.verifies},
            {"cold", w.starts_cold},
            {"ranks", static_cast<int>(w.ranks)},
            {"open", w.is_open}};
  for (const KindOfDevice& kind : kinds_of_devices) json[std::string(kind.name)] = w.runs_on(kind.name);
  return json;
}
WorkloadSchema workload_of(const Json& json) {
  WorkloadSchema w;
  w.id = json.at("id"), w.summary = json.at("summary"), w.item_unit = json.at("item_unit");
  w.params = table_of(json.at("params"), param_of);
  w.metrics = table_of(json.at("metrics"), metric_of);
  w.phases = json.at("phases").get<std::vector<std::string>>();
  w.presets = table_of(json.at("presets"), preset_of);
  const bool runs_on_all =
      std::erase_if(w.devices, [&](const std::string& kind) { return !json.at(kind).get<bool>(); }) == 0;
  // Which others are installed may have changed since the tables were read. That a workload names all kinds of the rows
  // and no other, its worker finds out.
  if (runs_on_all)
    for (std::string& kind : other_device_kinds()) w.devices.push_back(std::move(kind));
  w.verifies = json.at("verifies");
  w.starts_cold = json.at("cold");
  w.ranks = static_cast<RanksAre>(json.at("ranks").get<int>());
  w.is_open = json.at("open");
  return w;
}

}  // namespace

PluginTables copy_tables(const assay_entry& entry) {
  PluginTables tables{entry.id, entry.version, entry.build, entry.abi_major, entry.abi_minor, entry.min_host_minor, {}};
  for (std::uint32_t i = 0; i < entry.workload_count; ++i)
    tables.workloads.push_back(copy_schema(*entry.workloads[i], entry.abi_minor));
  return tables;
}

std::vector<std::string> PluginTables::workload_ids() const {
  std::vector<std::string> ids;
  for (const WorkloadSchema& schema : workloads) ids.push_back(schema.id);
  return ids;
}

namespace {
// Words that can be copied.
std::string several(const std::filesystem::path& file, const std::vector<std::string>& ids) {
  std::vector<std::string> names;
  for (const std::string& id : ids) names.push_back(fmt::format("\"{}:{}\"", file.stem().string(), id));
  return fmt::format("{} has several workloads; name one in [workload] plugin: {}", file.string(),
                     fmt::join(names, ", "));
}
}  // namespace

const WorkloadSchema& PluginTables::workload(const std::filesystem::path& file, const std::string& wanted) const {
  if (wanted.empty() && workloads.size() == 1) return workloads.front();
  for (const WorkloadSchema& schema : workloads)
    if (schema.id == wanted) return schema;
  throw PluginError(wanted.empty() ? several(file, workload_ids())
                                   : fmt::format("{}: has no workload '{}'; it has: {}", file.string(), wanted,
                                                 fmt::join(workload_ids(), ", ")));
}

std::string to_line(const PluginTables& t) {
  return Json{{"id", t.id},
              {"version", t.version},
              {"build", t.build},
              {"abi", {t.abi_major, t.abi_minor, t.min_host_minor}},
              {"workloads", rows_of(t.workloads)}}
      .dump();
}

PluginTables tables_from_line(std::string_view line) try {
  const Json json = Json::parse(line);
  const Json& abi = json.at("abi");
  return {json.at("id"),
          json.at("version"),
          json.at("build"),
          abi.at(0),
          abi.at(1),
          abi.at(2),
          table_of(json.at("workloads"), workload_of)};
} catch (const std::exception& e) {
  throw PluginError(fmt::format("the description of its tables is not understood: {}", e.what()));
}

}  // namespace assay::host::plugin
