#include "results/column_choice.hpp"

#include "common/suggest.hpp"
#include "experiment/experiment.hpp"
#include "record/identity_columns.hpp"
#include "results/default_columns.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

namespace assay::host::results {
namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
void add_once(Names& names, const std::string& name) {
  if (!has(names, name)) names.push_back(name);
}
void add_all_once(Names& names, const Names& more) {
  std::set<std::string> known(names.begin(), names.end());
  for (const std::string& name : more)
    if (known.insert(name).second) names.push_back(name);
}

template <class List>
void add_keys(Names& names, const List& list) {
  for (const auto& entry : list) add_once(names, entry.first);
}

// The moments of memory have any name, so that the records alone know these columns.
void add_memory_columns(Names& names, const record::CaseRecord& record) {
  if (!record.result.memory || !record.result.memory->moments) return;
  for (const record::MemoryAtMoment& moment : *record.result.memory->moments) {
    add_once(names, fmt::format("memory.{}.mib", moment.name));
    if (moment.current_mib)
      for (const auto& kind : *moment.current_mib)
        add_once(names, fmt::format("memory.{}.{}.mib", moment.name, kind.first));
    if (moment.peak_mib)
      for (const auto& kind : *moment.peak_mib)
        add_once(names, fmt::format("memory.{}.{}.peak_mib", moment.name, kind.first));
  }
}

// So have the parts of setup and of a verification.
void add_part_columns(Names& names, const record::CaseRecord& record) {
  for (const auto& part : record.result.wall.setup_parts_s) add_once(names, "wall_s.setup." + part.first);
  for (const auto& part : record.result.wall.verify_parts_s) add_once(names, "wall_s.verify." + part.first);
}

// Every column that these records may have a value for, but for sums and differences, which are too many to list.
Names known_columns(const std::vector<record::CaseRecord>& records) {
  Names axes, memory, parts;
  Names units{""};
  record::WorkloadNames workload;
  for (const record::CaseRecord& record : records) {
    add_keys(axes, record.identity.axes);
    add_keys(workload.params, record.identity.params);
    add_keys(workload.settings, record.identity.settings);
    if (record.result.metrics) add_keys(workload.case_metrics, *record.result.metrics);
    if (record.result.step_metrics) add_keys(workload.step_metrics, *record.result.step_metrics);
    if (record.result.phases)
      for (const auto& phase : *record.result.phases)
        if (phase.first != "step") add_once(workload.phases, phase.first);
    if (record.result.work) add_once(units, record.result.work->item_unit);
    add_memory_columns(memory, record);
    add_part_columns(parts, record);
  }
  Names names(record::run_columns.begin(), record::run_columns.end());
  add_all_once(names, axes);
  for (const std::string& unit : units) {
    workload.item_unit = unit;
    add_all_once(names, record::column_names(workload));
  }
  add_all_once(names, memory);
  add_all_once(names, parts);
  add_all_once(names, record::file_columns(records));
  return names;
}

bool is_pattern(const std::string& wanted) { return wanted.find_first_of("*?[") != std::string::npos; }

// Those of `names` that have something in some row, in their order.
Names filled(const Names& names, const std::vector<TabledRun>& runs) {
  const Table table = table_of_runs(names, runs);
  Names result;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::any_of(table.rows.begin(), table.rows.end(),
                    [i](const auto& row) { return !record::csv_text(row[i]).empty(); }))
      result.push_back(names[i]);
  return result;
}

// Those of `names` whose values differ between the rows.
Names differing(const Names& names, const std::vector<TabledRun>& runs) {
  const Table table = table_of_runs(names, runs);
  Names result;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::any_of(table.rows.begin(), table.rows.end(),
                    [&](const auto& row) { return row[i] != table.rows.front()[i]; }))
      result.push_back(names[i]);
  return result;
}

UnknownColumnError unknown(const std::string& column, const Names& known) {
  if (column == record::speedup_column || record::column_of_ratio(column))
    return UnknownColumnError(
        fmt::format("column '{}' needs the baseline of an experiment ([output] relative_to); the run's own table.csv "
                    "has it",
                    column));
  return UnknownColumnError(fmt::format(
      "no record has a column '{}'; expected a name (docs/record.md lists them), a pattern such as 'step.*', all, or "
      "default{}",
      column, did_you_mean(column, known)));
}

Names matching(const std::string& pattern, const Names& filled_names, const Names& known) {
  Names result;
  for (const std::string& name : filled_names)
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) result.push_back(name);
  if (result.empty()) throw unknown(pattern, known);
  return result;
}

}  // namespace

std::vector<std::string> default_columns_of_runs(const std::vector<TabledRun>& runs) {
  const std::vector<record::CaseRecord> records = all_records(runs);
  const Names shown = default_columns(experiment::Experiment{}, records);
  if (runs.size() < 2) {
    // An import has several programs in one run.
    Names columns = differing({"workload"}, runs);
    add_all_once(columns, shown);
    return columns;
  }
  Names candidates{"experiment", "host", "device.name", "workload", "plugin.version", "assay.revision"};
  for (const record::CaseRecord& record : records) add_keys(candidates, record.identity.params);
  for (const record::CaseRecord& record : records) add_keys(candidates, record.identity.settings);
  Names columns{"run"};
  for (const std::string& name : differing(candidates, runs))
    if (!has(shown, name)) columns.push_back(name);
  add_all_once(columns, shown);
  return columns;
}

std::vector<std::string> chosen_columns(const std::vector<std::string>& wanted, const std::vector<TabledRun>& runs) {
  const Names known = known_columns(all_records(runs));
  const bool needs_filled = std::any_of(wanted.begin(), wanted.end(),
                                        [](const std::string& name) { return name == "all" || is_pattern(name); });
  const Names with_value = needs_filled ? filled(known, runs) : Names{};
  Names columns;
  if (runs.size() > 1) columns.emplace_back("run");
  for (const std::string& name : wanted) {
    if (name == "all")
      add_all_once(columns, with_value);
    else if (name == "default")
      add_all_once(columns, default_columns_of_runs(runs));
    else if (is_pattern(name))
      add_all_once(columns, matching(name, with_value, known));
    else if (has(known, name) || record::is_column(name, known))
      add_once(columns, name);
    else
      throw unknown(name, known);
  }
  return columns;
}

std::vector<std::string> texts_of_unreported(const std::vector<std::string>& columns,
                                             const std::vector<record::CaseRecord>& records) {
  std::vector<std::string> texts;
  const auto is_ok = [](const record::CaseRecord& record) { return record.result.is_ok(); };
  if (columns.empty() || std::none_of(records.begin(), records.end(), is_ok)) return texts;
  const Names known = known_columns(records);
  for (const std::string& column : columns) {
    if (has(known, column) || record::is_column(column, known)) continue;
    texts.push_back(fmt::format("column '{}' of [output] columns is empty: no program reported it{}", column,
                                did_you_mean(column, known)));
  }
  return texts;
}

void check_column(const std::string& column, const std::vector<TabledRun>& runs) {
  const Names known = known_columns(all_records(runs));
  if (!has(known, column) && !record::is_column(column, known)) throw unknown(column, known);
}

}  // namespace assay::host::results
