#include "imports/csv_text.hpp"

#include <fmt/format.h>

#include "imports/formats.hpp"

namespace assay::host::imports {
namespace {

std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string field;
  bool is_quoted = false;
  const auto end_row = [&] {
    row.push_back(std::move(field));
    field.clear();
    if (row.size() > 1 || !row[0].empty()) rows.push_back(std::move(row));
    row.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      field += c, ++i;
    } else if (c == '"') {
      is_quoted = !is_quoted;
    } else if (is_quoted || (c != ',' && c != '\n' && c != '\r')) {
      field += c;
    } else if (c == ',') {
      row.push_back(std::move(field)), field.clear();
    } else if (c == '\n') {
      end_row();
    }
  }
  if (is_quoted) throw ImportError("its last row is torn: a quote is not closed");
  if (!field.empty() || !row.empty()) end_row();
  return rows;
}

}  // namespace

std::vector<std::vector<std::string>> csv_table(std::string_view text) {
  auto rows = csv_rows(text);
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].size() != rows[0].size())
      throw ImportError(fmt::format("row {} has {} fields, and there are {} columns; is the file cut off?", i + 1,
                                    rows[i].size(), rows[0].size()));
  return rows;
}

}  // namespace assay::host::imports
