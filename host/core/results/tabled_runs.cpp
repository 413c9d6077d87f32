#include "results/tabled_runs.hpp"

#include "common/filter.hpp"
#include "common/suggest.hpp"
#include "results/case_order.hpp"
#include "results/column_choice.hpp"
#include "results/find_runs.hpp"
#include "results/reader.hpp"
#include "results/table_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <system_error>

namespace assay::host::results {
namespace {

namespace fs = std::filesystem;

TabledRun read_lines(const fs::path& folder, const fs::path& cases_jsonl, std::vector<std::string>& warnings) {
  CasesFile cases = read_cases(cases_jsonl);
  warnings.insert(warnings.end(), cases.warnings.begin(), cases.warnings.end());
  return {run_source(folder, warnings), std::move(cases.records)};
}

TabledRun read_summary(const fs::path& file) {
  std::optional<SummaryFile> summary = read_summary_file(file);
  if (!summary)
    throw NoRunError(
        fmt::format("{} has no records: expected the summary that a run writes, a JSON object with \"cases\"; give the "
                    "run's folder instead",
                    file.string()));
  RunSource source;
  source.run = file.stem().string();
  source.experiment = std::move(summary->experiment);
  source.environment = std::move(summary->environment);
  source.environments = std::move(summary->environments);
  return {std::move(source), std::move(summary->records)};
}

TabledRun read_one(const fs::path& path, std::vector<std::string>& warnings) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_lines(path, path / "cases.jsonl", warnings);
  if (path.extension() != ".jsonl") return read_summary(path);
  return read_lines(path.has_parent_path() ? path.parent_path() : fs::path("."), path, warnings);
}

record::Cell cell_in(const TabledRun& run, const record::CaseRecord& record, const std::string& column) {
  const auto of_run = run.source.cell_of(record, column);
  return of_run ? *of_run : record::cell_of(record, column);
}

bool is_said(const record::Cell& cell, const std::string& value) {
  return record::csv_text(cell) == value || record::display_text(cell) == value;
}

bool matches(const Filter& filter, const record::Cell& cell) {
  if (filter.is_ordering()) {
    const auto number = number_in(record::csv_text(cell));
    return number && filter.holds(*number);
  }
  const bool is_named =
      is_said(cell, filter.raw) || std::any_of(filter.values.begin(), filter.values.end(),
                                               [&](const std::string& value) { return is_said(cell, value); });
  return is_named == (filter.relation == Relation::equal);
}

// What stands in the column, as far as a message has room for it.
std::vector<std::string> values_in(const std::vector<TabledRun>& runs, const std::string& column) {
  constexpr std::size_t most = 20;
  std::vector<std::string> values;
  for (const TabledRun& run : runs)
    for (const record::CaseRecord& record : run.records) {
      std::string text = record::csv_text(cell_in(run, record, column));
      if (std::find(values.begin(), values.end(), text) != values.end()) continue;
      values.push_back(std::move(text));
      if (values.size() == most) return values;
    }
  return values;
}

Filter filter_in(const std::string& text) try {
  return parse_filter(text, "column");
} catch (const FilterSyntaxError& e) {
  throw FilterError(fmt::format("--filter is '{}': {}", text, e.what()));
}

void keep_matching(std::vector<TabledRun>& runs, const std::string& text) {
  const Filter filter = filter_in(text);
  check_column(filter.key, runs);
  const std::vector<std::string> values = values_in(runs, filter.key);
  bool is_any_left = false;
  for (TabledRun& run : runs) {
    std::erase_if(run.records,
                  [&](const record::CaseRecord& record) { return !matches(filter, cell_in(run, record, filter.key)); });
    is_any_left |= !run.records.empty();
  }
  if (is_any_left) return;
  const std::string near = filter.relation != Relation::equal ? "" : did_you_mean(filter.values.front(), values);
  throw FilterError(fmt::format("--filter {}: no row that is left has this; there {} {}{}", text,
                                values.size() == 1 ? "is" : "are", fmt::join(values, ", "), near));
}

}  // namespace

std::vector<TabledRun> read_tabled_runs(const std::vector<std::string>& given, std::vector<std::string>& warnings) {
  std::vector<TabledRun> runs;
  for (const std::string& argument : without_links_to_others(given, warnings))
    for (const fs::path& path : runs_of(argument)) {
      TabledRun run = read_one(path, warnings);
      run.records = last_of_each_case(std::move(run.records));
      if (run.records.empty()) warnings.push_back(text_of_no_records(path));
      runs.push_back(std::move(run));
    }
  return runs;
}

void keep_matching(std::vector<TabledRun>& runs, const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) keep_matching(runs, filter);
}

Table table_of_runs(std::vector<std::string> columns, const std::vector<TabledRun>& runs) {
  // Made of all rows, so that each run's table has the same columns.
  Table table = make_table(std::move(columns), all_records(runs));
  table.rows.clear();
  for (const TabledRun& run : runs) {
    Table rows = make_table(table.columns, run.records, {}, &run.source);
    std::move(rows.rows.begin(), rows.rows.end(), std::back_inserter(table.rows));
  }
  return table;
}

std::string below_table_of_runs(const std::vector<TabledRun>& runs) {
  std::vector<std::string> parts;
  for (const TabledRun& run : runs)
    if (!run.records.empty()) parts.push_back(below_table(run.records, {}, run.source));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

std::vector<record::CaseRecord> all_records(const std::vector<TabledRun>& runs) {
  std::vector<record::CaseRecord> records;
  for (const TabledRun& run : runs) records.insert(records.end(), run.records.begin(), run.records.end());
  return records;
}

}  // namespace assay::host::results
