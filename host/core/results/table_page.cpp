#include "results/table_page.hpp"

#include "common/text_format.hpp"
#include "results/case_text.hpp"
#include "results/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <unordered_set>

namespace assay::host::results {
namespace {

// The different texts of a column, in the order of the records.
std::string texts_of(const std::vector<record::CaseRecord>& records, const RunSource& source, const char* column) {
  std::vector<std::string> texts;
  for (const record::CaseRecord& record : records) {
    const auto of_run = source.cell_of(record, column);
    std::string text = record::display_text(of_run ? *of_run : record::cell_of(record, column));
    if (!text.empty() && std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "Run 20261120T120000Z-9f2c of decoder-sizes, on n1 (AMD EPYC), assay 1.0.0 (revision 1a2b3c4)"
std::string origin_line(const std::vector<record::CaseRecord>& records, const RunSource& source) {
  const auto in_brackets = [](const std::string& text, const std::string& more) {
    return text.empty() || more.empty() ? text + more : fmt::format("{} ({})", text, more);
  };
  const auto revision = texts_of(records, source, "assay.revision");
  const std::string place = in_brackets(texts_of(records, source, "host"), texts_of(records, source, "device.name"));
  const std::string version =
      in_brackets(texts_of(records, source, "assay.version"), revision.empty() ? "" : "revision " + revision);
  std::string line = "Run " + source.run;
  if (!source.experiment.empty()) line += " of " + source.experiment;
  if (!place.empty()) line += ", on " + place;
  if (!version.empty()) line += ", assay " + version;
  return line;
}

// Every column of a single row has one value; these alone are no figures of it.
constexpr std::array<std::string_view, 4> columns_that_fold{"validity", "verify", "device", "status"};

bool is_alike_in_all_rows(const Table& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
    return row[column] == table.rows.front()[column] && !row[column].empty();
  });
}

bool fits(std::string_view text, std::size_t width_columns) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (display_width(text.substr(begin, end - begin)) > width_columns) return false;
    begin = end + 1;
  }
  return true;
}

Table with_columns(const Table& table, const std::vector<std::size_t>& columns) {
  Table part;
  part.rows.resize(table.rows.size());
  for (const std::size_t column : columns) {
    part.columns.push_back(table.columns[column]);
    for (std::size_t row = 0; row < table.rows.size(); ++row) part.rows[row].push_back(table.rows[row][column]);
  }
  return part;
}

// Rows that are alike have the same.
std::string text_of(const std::vector<record::Cell>& row) {
  std::string text;
  for (const record::Cell& cell : row) text += csv_field(record::csv_text(cell)) + ',';
  return text;
}

// The first columns by which rows differ, which the axes of a sweep are. None where rows that are alike stay, or where
// so many columns would leave no room.
std::vector<std::size_t> telling_columns(const Table& table, std::size_t width_columns) {
  std::vector<std::size_t> columns;
  while (columns.size() < table.columns.size()) {
    columns.push_back(columns.size());
    const Table part = with_columns(table, columns);
    if (!fits(to_terminal(part, width_columns / 2), width_columns / 2)) return {};
    std::unordered_set<std::string> rows;
    if (std::all_of(part.rows.begin(), part.rows.end(),
                    [&](const auto& row) { return rows.insert(text_of(row)).second; }))
      return columns;
  }
  return {};
}

Table with_row_numbers(const Table& table) {
  Table numbered = table;
  numbered.columns.insert(numbered.columns.begin(), "row");
  for (std::size_t row = 0; row < numbered.rows.size(); ++row)
    numbered.rows[row].insert(numbered.rows[row].begin(), record::count_cell(static_cast<std::int64_t>(row + 1)));
  return numbered;
}

// A status that differs belongs beside what distinguishes the rows.
Table with_status_early(const Table& table, std::size_t place) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), "status");
  if (found == table.columns.end()) return table;
  const auto status = static_cast<std::size_t>(found - table.columns.begin());
  if (status <= place) return table;
  std::vector<std::size_t> order(table.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(place), order.begin() + static_cast<std::ptrdiff_t>(status),
              order.begin() + static_cast<std::ptrdiff_t>(status) + 1);
  return with_columns(table, order);
}

std::string folded_line(const std::string& text, std::size_t width_columns) {
  constexpr std::size_t indent = 2, fewest = 20;
  std::string all;
  for (const std::string& line : wrapped(text, std::max(width_columns, indent + fewest) - indent))
    all += (all.empty() ? "" : std::string(indent, ' ')) + line + "\n";
  return all;
}

// As many tables below each other as the width needs, each with the columns that distinguish its rows, or with their
// numbers. Where something else shows the rest, the first of them, and what it leaves out.
std::string in_parts(const Table& whole, std::size_t width_columns, const Palette& palette, const std::string& rest) {
  if (fits(to_terminal(whole, width_columns), width_columns)) return to_terminal(whole, width_columns, palette);
  std::vector<std::size_t> telling = telling_columns(whole, width_columns);
  const Table numbered = telling.empty() ? with_row_numbers(whole) : whole;
  if (telling.empty()) telling.push_back(0);
  const Table table = with_status_early(numbered, telling.size());
  std::string text;
  for (std::size_t next = telling.size(); next < table.columns.size();) {
    std::vector<std::size_t> columns = telling;
    columns.push_back(next++);
    while (next < table.columns.size()) {
      columns.push_back(next);
      if (!fits(to_terminal(with_columns(table, columns), width_columns), width_columns)) {
        columns.pop_back();
        break;
      }
      ++next;
    }
    text += (text.empty() ? "" : "\n") + to_terminal(with_columns(table, columns), width_columns, palette);
    if (rest.empty() || next == table.columns.size()) continue;
    const std::vector<std::string> left(table.columns.begin() + static_cast<std::ptrdiff_t>(next), table.columns.end());
    return text + folded_line(fmt::format("no room for {}: {} has {}", fmt::join(left, ", "), rest,
                                          left.size() == 1 ? "it" : "them"),
                              width_columns);
  }
  return text;
}

}  // namespace

std::string below_table(const std::vector<record::CaseRecord>& records, const std::vector<std::string>& allow,
                        const RunSource& source) {
  std::string text;
  for (const std::string& line : problem_lines(records, allow)) text += fmt::format("- {}\n", line);
  for (const std::string& line : validity_lines(records)) text += fmt::format("- {}\n", line);
  for (const std::string& line : note_lines(records)) text += fmt::format("- {}\n", line);
  if (!text.empty()) text += '\n';
  return text + origin_line(records, source) + ".\n";
}

std::string table_page(const Table& table, const std::vector<record::CaseRecord>& records,
                       const std::vector<std::string>& allow, const RunSource& source) {
  return to_markdown(table) + "\n" + below_table(records, allow, source);
}

std::string table_on_terminal(const Table& table, std::size_t width_columns, const Palette& palette,
                              const std::string& rest) {
  const std::string whole = to_terminal(table, width_columns);
  if (table.rows.empty() || fits(whole, width_columns)) return to_terminal(table, width_columns, palette);
  const auto may_fold = [&table](const std::string& name) {
    return table.rows.size() > 1 ||
           std::find(columns_that_fold.begin(), columns_that_fold.end(), name) != columns_that_fold.end();
  };
  std::vector<std::size_t> kept;
  std::vector<std::string> constant;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (may_fold(table.columns[i]) && is_alike_in_all_rows(table, i))
      constant.push_back(
          fmt::format("{} {}", table.columns[i], palette.paint(record::display_text(table.rows.front()[i]))));
    else
      kept.push_back(i);
  }
  if (constant.empty() || kept.empty()) return in_parts(table, width_columns, palette, rest);
  const std::size_t rows = table.rows.size();
  const std::string same = rows == 1 ? "" : rows == 2 ? "in both rows: " : fmt::format("in all {} rows: ", rows);
  return folded_line(fmt::format("{}{}", same, fmt::join(constant, ", ")), width_columns) +
         in_parts(with_columns(table, kept), width_columns, palette, rest);
}

}  // namespace assay::host::results
