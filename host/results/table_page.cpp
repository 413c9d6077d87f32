#include "results/table_page.hpp"

#include "common/text_format.hpp"
#include "results/case_text.hpp"
#include "results/notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

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

constexpr std::array<std::string_view, 3> columns_that_fold{"validity", "verify", "device"};

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

}  // namespace

std::string below_table(const std::vector<record::CaseRecord>& records, const std::vector<std::string>& allow,
                        const RunSource& source) {
  std::string text;
  for (const std::string& line : problem_lines(records, allow)) text += fmt::format("- {}\n", line);
  for (const std::string& line : note_lines(records)) text += fmt::format("- {}\n", line);
  if (!text.empty()) text += '\n';
  return text + origin_line(records, source) + ".\n";
}

std::string table_page(const Table& table, const std::vector<record::CaseRecord>& records,
                       const std::vector<std::string>& allow, const RunSource& source) {
  return to_markdown(table) + "\n" + below_table(records, allow, source);
}

std::string table_on_terminal(const Table& table, std::size_t width_columns) {
  std::string text = to_terminal(table, width_columns);
  if (table.rows.empty() || fits(text, width_columns)) return text;
  Table narrow;
  narrow.rows.resize(table.rows.size());
  std::vector<std::string> told;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::string& name = table.columns[i];
    const bool may_fold =
        std::find(columns_that_fold.begin(), columns_that_fold.end(), name) != columns_that_fold.end();
    if (may_fold && is_alike_in_all_rows(table, i)) {
      told.push_back(fmt::format("{} {}", name, record::display_text(table.rows.front()[i])));
      continue;
    }
    narrow.columns.push_back(name);
    for (std::size_t row = 0; row < table.rows.size(); ++row) narrow.rows[row].push_back(table.rows[row][i]);
  }
  if (told.empty()) return text;
  return fmt::format("{}{}: {}\n", to_terminal(narrow, width_columns),
                     table.rows.size() == 1 ? "the case" : "each case", fmt::join(told, ", "));
}

}  // namespace assay::host::results
