#include "results/table.hpp"

#include "common/parallel.hpp"
#include "common/text_format.hpp"
#include "record/json.hpp"
#include "results/baselines.hpp"
#include "results/run_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

namespace assay::host::results {
namespace {

// The displayed texts of one column, and how they stand in it.
struct Column {
  std::string name;                 // with the unit that its cells have
  std::vector<std::string> header;  // its lines
  std::vector<std::string> cells;
  Align align = Align::left;

  std::size_t width() const {
    std::size_t result = 0;
    for (const std::string& line : header) result = std::max(result, display_width(line));
    for (const std::string& cell : cells) result = std::max(result, display_width(cell));
    return result;
  }
};

std::string without_bars(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

// A unit that fits the largest figure of a column: people read 1.951 us and 33.59 Gbytes_per_s where the column of a
// program has 0.001951 ms and 33590118142 bytes_per_s.
struct FittingUnit {
  std::string name;  // of the column
  double factor = 1;
};

FittingUnit fitting_unit(const std::string& name, double largest) {
  const auto with_end = [&name](std::string_view end, std::string_view other, double factor) {
    return FittingUnit{name.substr(0, name.size() - end.size()) + std::string(other), factor};
  };
  constexpr double shortest_ms = 0.1, longest_ms = 1e6, most_mib = 1e5, highest_rate = 1e7;
  if (name.ends_with("_ms") && largest < shortest_ms) return with_end("_ms", "_us", 1e3);
  if (name.ends_with("_ms") && largest >= longest_ms) return with_end("_ms", "_s", 1e-3);
  if (name.ends_with("_mib") && largest >= most_mib) return with_end("_mib", "_gib", 1.0 / 1024);
  if (name.ends_with(" MiB") && largest >= most_mib) return with_end(" MiB", " GiB", 1.0 / 1024);
  const bool has_prefix = name.starts_with("gflop_") || name.starts_with("gbytes_");
  if (name.ends_with("_per_s") && !has_prefix && largest >= highest_rate) {
    for (const auto& [prefix, size] : {std::pair{"T", 1e12}, std::pair{"G", 1e9}})
      if (largest >= size) return {prefix + name, 1 / size};
    return {"M" + name, 1e-6};
  }
  return {name, 1};
}

FittingUnit fitting_unit(const Table& table, std::size_t column) {
  double largest = 0;
  for (const std::vector<record::Cell>& row : table.rows)
    if (const auto number = row[column].number()) largest = std::max(largest, std::abs(*number));
  return largest > 0 ? fitting_unit(table.columns[column], largest) : FittingUnit{table.columns[column], 1};
}

record::Cell scaled(const record::Cell& cell, double factor) {
  const auto number = cell.number();
  if (factor == 1 || !number) return cell;
  record::Cell result = record::number_cell(*number * factor);
  result.digits = cell.digits;
  return result;
}

std::vector<Column> displayed(const Table& table) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const FittingUnit unit = fitting_unit(table, i);
    Column column;
    column.name = one_line(unit.name);
    column.header = {column.name};
    bool numbers = false, others = false;
    for (const std::vector<record::Cell>& row : table.rows) {
      column.cells.push_back(record::display_text(scaled(row[i], unit.factor)));
      (row[i].is_number() ? numbers : others) |= !row[i].empty();
    }
    column.align = numbers && !others ? Align::right : Align::left;
    columns.push_back(std::move(column));
  }
  return columns;
}

// "forward.mean_ms" -> "forward", ".mean_ms"; with `all_dots`, at each dot, and before '+' and "_per_s" too.
std::vector<std::string> broken_header(const std::string& name, bool all_dots) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool dot = name[i] == '.' && (all_dots || lines.size() == 1);
    const bool other = all_dots && (name[i] == '+' || name.compare(i, std::string::npos, "_per_s") == 0);
    if (i > 0 && (dot || other)) lines.emplace_back();
    lines.back() += name[i];
  }
  return lines;
}

nlohmann::ordered_json json_of(const record::Cell& cell) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return nlohmann::ordered_json();
        else
          return nlohmann::ordered_json(value);
      },
      cell.value);
}

constexpr std::size_t kGap = 2;

std::size_t total_width(const std::vector<Column>& columns) {
  return std::accumulate(columns.begin(), columns.end(), std::size_t{0},
                         [](std::size_t sum, const Column& c) { return sum + c.width() + kGap; }) -
         (columns.empty() ? 0 : kGap);
}

// Columns whose words are the house's own.
bool judges(const std::string& column) {
  const std::string last = column.substr(column.rfind('.') + 1);
  return last == "status" || last == "verify" || last == "validity" || last == "verdict" || last == "fits";
}

void add_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

}  // namespace

Table make_table(std::vector<std::string> columns, const std::vector<record::CaseRecord>& records,
                 const record::Named<Value>& relative_to, const RunSource* source) {
  const bool some_not_ok =
      std::any_of(records.begin(), records.end(), [](const record::CaseRecord& r) { return !r.result.is_ok(); });
  if (some_not_ok && std::find(columns.begin(), columns.end(), "status") == columns.end()) columns.push_back("status");
  Table table{std::move(columns), {}};
  const Baselines baselines(records, relative_to);
  table.rows.resize(records.size());
  for_each_in_parallel(records.size(), [&](std::size_t i) {
    table.rows[i].reserve(table.columns.size());
    for (const std::string& column : table.columns) {
      std::optional<record::Cell> of_run = source ? source->cell_of(records[i], column) : std::nullopt;
      table.rows[i].push_back(of_run ? std::move(*of_run) : baselines.cell_of(records[i], column));
    }
  });
  return table;
}

std::string to_csv(const Table& table) {
  std::vector<std::string> fields;
  for (const std::string& column : table.columns) fields.push_back(csv_field(column));
  std::string out = fmt::format("{}\n", fmt::join(fields, ","));
  for (const std::vector<record::Cell>& row : table.rows) {
    fields.clear();
    for (const record::Cell& cell : row) fields.push_back(csv_field(one_line(record::csv_text(cell))));
    // To a reader an empty line is no row at all.
    if (fields.size() == 1 && fields[0].empty()) fields[0] = "\"\"";
    out += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return out;
}

std::string to_json(const Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<record::Cell>& row : table.rows) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = json_of(row[i]);
    rows.push_back(std::move(object));
  }
  return record::json_text(rows, 2) + "\n";
}

std::string to_markdown(const Table& table) {
  std::vector<Column> columns = displayed(table);
  std::vector<std::string> lines(table.rows.size() + 2, "|");
  for (Column& column : columns) {
    column.header[0] = without_bars(column.header[0]);
    for (std::string& cell : column.cells) cell = without_bars(cell);
    const std::size_t width = std::max<std::size_t>(column.width(), 3);
    const bool right = column.align == Align::right;
    lines[0] += fmt::format(" {} |", pad_to(column.header[0], width, column.align));
    lines[1] += fmt::format(" {:-<{}}{} |", "", width - 1, right ? ":" : "-");
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      lines[row + 2] += fmt::format(" {} |", pad_to(column.cells[row], width, column.align));
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string to_terminal(const Table& table, std::size_t width_columns, const Palette& palette) {
  std::vector<Column> columns = displayed(table);
  for (const bool all_dots : {false, true}) {
    if (total_width(columns) <= width_columns) break;
    for (Column& column : columns) column.header = broken_header(column.name, all_dots);
  }
  std::size_t header_lines = 0;
  for (const Column& column : columns) header_lines = std::max(header_lines, column.header.size());

  std::vector<std::size_t> widths;  // a column's is a walk over all its cells
  for (const Column& column : columns) widths.push_back(column.width());

  std::string out;
  const std::string gap(kGap, ' ');
  for (std::size_t line = 0; line < header_lines; ++line) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column& c = columns[i];
      // Headers stand on the rule below them.
      const std::size_t skipped = header_lines - c.header.size();
      text += pad_to(line < skipped ? "" : c.header[line - skipped], widths[i], c.align) + gap;
    }
    add_line(out, text);
  }
  std::string rule;
  for (const std::size_t width : widths) {
    for (std::size_t i = 0; i < width; ++i) rule += "─";
    rule += gap;
  }
  add_line(out, rule);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Column& c = columns[i];
      const std::string padded = pad_to(c.cells[row], widths[i], c.align) + gap;
      // A value of an axis may be any word.
      text += judges(table.columns[i]) ? palette.paint(c.cells[row]) + padded.substr(c.cells[row].size()) : padded;
    }
    add_line(out, text);
  }
  return out;
}

}  // namespace assay::host::results
