// Is a text UTF-8? What is not cannot stand in a record, nor in any other JSON.
#pragma once
#include <cstddef>
#include <string_view>

namespace assay::host {

// Well-formed as in the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF.
constexpr bool is_utf8(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned first = at(i);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xC2 && first < 0xE0 ? 2
                               : first >= 0xE0 && first < 0xF0 ? 3
                               : first >= 0xF0 && first < 0xF5 ? 4
                                                               : 0;
    if (length == 0) return false;
    const unsigned second = at(i + 1);
    if (length > 1 &&
        (second < 0x80 || second > 0xBF || (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
         (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)))
      return false;
    for (std::size_t k = 2; k < length; ++k)
      if (at(i + k) < 0x80 || at(i + k) > 0xBF) return false;
    i += length;
  }
  return true;
}

}  // namespace assay::host
