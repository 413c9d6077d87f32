// A text in a cell of a Markdown table.
#pragma once
#include <string>

namespace assay::host::profile {

inline std::string markdown_cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

}  // namespace assay::host::profile
