#include "common/foreign_json.hpp"

namespace assay::host {

bool is_nested_deeper(std::string_view json, int levels) {
  int level = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++level > levels) return true;
    } else if (c == '}' || c == ']') {
      --level;
    }
  }
  return false;
}

}  // namespace assay::host
