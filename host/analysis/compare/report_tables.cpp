#include "compare/report_tables.hpp"

#include "compare/ends.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::host::compare {

record::Cell text_cell(const std::string& text) { return text.empty() ? record::Cell{} : record::text_cell(text); }

record::Cell value_cell(const Entry& entry) {
  if (entry.word) return text_cell(*entry.word);
  record::Cell cell = record::number_cell(entry.value);
  cell.digits = entry.digits;
  return cell;
}

std::string interval_text(const Entry& entry) {
  const std::string text = ends_text({entry.low, entry.high});
  return text.empty() && entry.ratio ? "not known" : text;
}

record::Cell runs_needed_cell(const Entry& entry) {
  return entry.runs_to_settle ? record::count_cell(static_cast<std::int64_t>(*entry.runs_to_settle)) : record::Cell{};
}

std::string other_ratio_column(const Comparison& comparison, const ComparedMetric& metric) {
  for (const ComparedCase& c : metric.cases)
    for (const Entry& entry : c.entries)
      if (entry.other_ratio)
        return fmt::format("{}/{} {}", comparison.sides.size() == 2 ? comparison.sides[1].label : "",
                           comparison.sides[0].label, entry.statistic == Statistic::mean ? "p05" : "mean");
  return "";
}

bool is_compared(const Entry& entry) { return entry.kind == Entry::Kind::compared; }
bool compares_any(const ComparedCase& c) { return std::any_of(c.entries.begin(), c.entries.end(), is_compared); }

std::set<std::string> units_of(const ComparedMetric& metric) {
  std::set<std::string> units;
  for (const ComparedCase& c : metric.cases)
    if (!c.unit.empty()) units.insert(c.unit);
  return units;
}

bool drop_column(results::Table& table, const std::string& name) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), name);
  if (found == table.columns.end()) return false;
  const auto place = found - table.columns.begin();
  table.columns.erase(found);
  for (std::vector<record::Cell>& row : table.rows) row.erase(row.begin() + place);
  return true;
}

namespace {

std::string interval_header(const TestOptions& test) { return fmt::format("{:g}% interval", test.confidence * 100); }

bool needs_runs(const ComparedMetric& metric) {
  for (const ComparedCase& c : metric.cases)
    for (const Entry& entry : c.entries)
      if (entry.runs_to_settle) return true;
  return false;
}

// Once, beside the first metric: items for a dollar are the same whatever is compared.
bool has_costs(const Comparison& comparison, const ComparedMetric& shown) {
  if (&shown != &comparison.metrics.front()) return false;
  for (const ComparedMetric& metric : comparison.metrics)
    for (const ComparedCase& c : metric.cases)
      for (const Entry& entry : c.entries)
        if (entry.items_per_dollar) return true;
  return false;
}

std::set<std::string> workloads_of(const ComparedMetric& metric) {
  std::set<std::string> workloads;
  for (const ComparedCase& c : metric.cases) workloads.insert(c.workload);
  return workloads;
}

// What names a case: its workload where there are several, its axes, its unit where there are several.
struct CaseColumns {
  bool workload, unit;
  explicit CaseColumns(const ComparedMetric& metric)
      : workload(workloads_of(metric).size() > 1), unit(units_of(metric).size() > 1) {}
  void add_names(const Comparison& comparison, std::vector<std::string>& columns) const {
    if (workload) columns.emplace_back("workload");
    columns.insert(columns.end(), comparison.axes.begin(), comparison.axes.end());
    if (unit) columns.emplace_back("unit");
  }
  void add_cells(const ComparedCase& c, bool shown, std::vector<record::Cell>& row) const {
    if (workload) row.push_back(text_cell(shown ? c.workload : ""));
    for (const std::string& value : c.axis_values) row.push_back(text_cell(shown ? value : ""));
    if (unit) row.push_back(text_cell(shown ? c.unit : ""));
  }
};

// Two sides: a line per case.
results::Table table_of_two(const Comparison& comparison, const ComparedMetric& metric, const TestOptions& test,
                            const NumberedNotes& notes) {
  const std::string &a = comparison.sides[0].label, &b = comparison.sides[1].label;
  const CaseColumns names(metric);
  const bool costs = has_costs(comparison, metric), runs_needed = needs_runs(metric);
  const std::string other = other_ratio_column(comparison, metric);
  results::Table table;
  names.add_names(comparison, table.columns);
  for (const std::string& column : {a, b, fmt::format("{}/{}", b, a), interval_header(test)})
    table.columns.push_back(column);
  if (!other.empty()) table.columns.push_back(other);
  table.columns.emplace_back("verdict");
  if (runs_needed) table.columns.emplace_back(runs_needed_column);
  if (costs)
    for (const std::string& side : {a, b}) table.columns.push_back(fmt::format("{}/$ {}", comparison.item_unit, side));
  for (const ComparedCase& c : metric.cases) {
    if (!compares_any(c)) continue;
    const Entry &of_a = c.entries[0], &of_b = c.entries[1];
    std::vector<record::Cell> row;
    names.add_cells(c, true, row);
    row.push_back(value_cell(of_a));
    row.push_back(value_cell(of_b));
    row.push_back(record::number_cell(of_b.ratio));
    row.push_back(text_cell(interval_text(of_b)));
    if (!other.empty()) row.push_back(record::number_cell(of_b.other_ratio));
    row.push_back(text_cell(of_b.verdict + notes.marks(of_b)));
    if (runs_needed) row.push_back(runs_needed_cell(of_b));
    if (costs)
      for (const Entry* entry : {&of_a, &of_b}) row.push_back(record::number_cell(entry->items_per_dollar));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// More sides: a line per case and side.
results::Table table_of_many(const Comparison& comparison, const ComparedMetric& metric, const TestOptions& test,
                             const NumberedNotes& notes) {
  const CaseColumns names(metric);
  const bool costs = has_costs(comparison, metric), runs_needed = needs_runs(metric);
  const std::string other = other_ratio_column(comparison, metric);
  results::Table table;
  names.add_names(comparison, table.columns);
  for (const std::string& column :
       {std::string("side"), metric.name, fmt::format("/{}", comparison.sides[0].label), interval_header(test)})
    table.columns.push_back(column);
  if (!other.empty()) table.columns.push_back(other);
  table.columns.emplace_back("verdict");
  if (runs_needed) table.columns.emplace_back(runs_needed_column);
  if (costs) table.columns.push_back(fmt::format("{}/$", comparison.item_unit));
  for (const ComparedCase& c : metric.cases) {
    if (!compares_any(c)) continue;
    for (std::size_t s = 0; s < c.entries.size(); ++s) {
      const Entry& entry = c.entries[s];
      if (entry.kind == Entry::Kind::missing) continue;
      std::vector<record::Cell> row;
      names.add_cells(c, s == 0, row);
      row.push_back(text_cell(comparison.sides[s].label));
      row.push_back(value_cell(entry));
      row.push_back(record::number_cell(entry.ratio));
      row.push_back(text_cell(interval_text(entry)));
      if (!other.empty()) row.push_back(record::number_cell(entry.other_ratio));
      const bool refused = entry.kind == Entry::Kind::refused;
      row.push_back(text_cell(s == 0 ? "(baseline)" : refused ? "not compared" : entry.verdict + notes.marks(entry)));
      if (runs_needed) row.push_back(runs_needed_cell(entry));
      if (costs) row.push_back(record::number_cell(entry.items_per_dollar));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// Words have no ratio.
bool is_of_words(const ComparedMetric& metric) {
  for (const ComparedCase& c : metric.cases)
    for (const Entry& entry : c.entries)
      if (entry.value || entry.ratio) return false;
  return true;
}

// A row of the tables with metrics side by side: a case, and with more than two sides one of its sides.
struct SideBySideRow {
  std::size_t place = 0;  // of the case in every metric
  std::size_t side = 1;
};

std::vector<SideBySideRow> rows_side_by_side(const Comparison& comparison) {
  std::vector<SideBySideRow> rows;
  const std::vector<ComparedMetric>& metrics = comparison.metrics;
  const bool two = comparison.sides.size() == 2;
  for (std::size_t c = 0; c < metrics.front().cases.size(); ++c) {
    if (std::none_of(metrics.begin(), metrics.end(), [c](const auto& m) { return compares_any(m.cases[c]); })) continue;
    for (std::size_t s = two ? 1 : 0; s < comparison.sides.size(); ++s) rows.push_back({c, s});
  }
  return rows;
}

void add_metric_columns(const Comparison& comparison, const ComparedMetric& metric, const NumberedNotes& notes,
                        results::Table& table) {
  const bool two = comparison.sides.size() == 2;
  const std::string &a = comparison.sides[0].label, &b = comparison.sides[1].label;
  const std::vector<std::string> columns = two ? std::vector<std::string>{a, b, fmt::format("{}/{}", b, a), "verdict"}
                                               : std::vector<std::string>{"value", fmt::format("/{}", a), "verdict"};
  for (const std::string& column : columns) table.columns.push_back(fmt::format("{}.{}", metric.name, column));
  const std::vector<SideBySideRow> rows = rows_side_by_side(comparison);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<Entry>& entries = metric.cases[rows[i].place].entries;
    const Entry& entry = entries[rows[i].side];
    std::vector<record::Cell>& row = table.rows[i];
    if (two) row.push_back(value_cell(entries[0]));
    row.push_back(value_cell(entry));
    row.push_back(record::number_cell(entry.ratio));
    const bool refused = entry.kind == Entry::Kind::refused;
    row.push_back(text_cell(entry.kind == Entry::Kind::baseline ? "(baseline)"
                            : refused                           ? "not compared"
                                                                : entry.verdict + notes.marks(entry)));
  }
}

// The table without a metric: what distinguishes its rows.
results::Table names_side_by_side(const Comparison& comparison) {
  results::Table table;
  const ComparedMetric& first = comparison.metrics.front();
  const bool two = comparison.sides.size() == 2, workloads = workloads_of(first).size() > 1;
  if (workloads) table.columns.emplace_back("workload");
  table.columns.insert(table.columns.end(), comparison.axes.begin(), comparison.axes.end());
  if (!two) table.columns.emplace_back("side");
  for (const SideBySideRow& named : rows_side_by_side(comparison)) {
    const ComparedCase& c = first.cases[named.place];
    const bool shown = two || named.side == 0;
    std::vector<record::Cell> row;
    if (workloads) row.push_back(text_cell(shown ? c.workload : ""));
    for (const std::string& value : c.axis_values) row.push_back(text_cell(shown ? value : ""));
    if (!two) row.push_back(text_cell(comparison.sides[named.side].label));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

results::Table metric_table(const Comparison& comparison, const ComparedMetric& metric, const TestOptions& test,
                            const NumberedNotes& notes) {
  const bool two = comparison.sides.size() == 2;
  results::Table table =
      two ? table_of_two(comparison, metric, test, notes) : table_of_many(comparison, metric, test, notes);
  if (is_of_words(metric)) {
    drop_column(table, interval_header(test));
    drop_column(table, two ? fmt::format("{}/{}", comparison.sides[1].label, comparison.sides[0].label)
                           : fmt::format("/{}", comparison.sides[0].label));
  }
  return table;
}

std::vector<results::Table> tables_side_by_side(const Comparison& comparison, const NumberedNotes& notes,
                                                const std::function<bool(const results::Table&)>& fits) {
  std::vector<results::Table> tables;
  if (comparison.metrics.empty()) return tables;
  const results::Table names = names_side_by_side(comparison);
  for (const ComparedMetric& metric : comparison.metrics) {
    if (!tables.empty()) {
      results::Table wider = tables.back();
      add_metric_columns(comparison, metric, notes, wider);
      if (fits(wider)) {
        tables.back() = std::move(wider);
        continue;
      }
    }
    tables.push_back(names);
    add_metric_columns(comparison, metric, notes, tables.back());
  }
  return tables;
}

}  // namespace assay::host::compare
