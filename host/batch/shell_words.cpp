#include "batch/shell_words.hpp"

#include <cctype>

namespace assay::host::batch {
namespace {

// How many characters of "${NAME}" begin the text; 0 where it says more, such as a default value.
std::size_t length_of_braced_variable(std::string_view text) {
  std::size_t end = 2;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
  return end > 2 && end < text.size() && text[end] == '}' ? end + 1 : 0;
}

}  // namespace

std::optional<std::vector<std::string>> shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool is_in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : 0;
    if (quote == '\'') {
      if (c == quote)
        quote = 0;
      else
        word += c;
      continue;
    }
    // Also between double quotes the shell would run a command.
    if (c == '`' || (c == '$' && next == '(')) return std::nullopt;
    if (c == '$' && next == '{') {
      const std::size_t length = length_of_braced_variable(text.substr(i));
      if (length == 0) return std::nullopt;
      word += text.substr(i, length), is_in_word = true, i += length - 1;
    } else if (c == '\\') {
      if (next == 0) return std::nullopt;
      // Between double quotes a backslash is one like any other, but before these.
      if (quote && std::string_view("$`\"\\").find(next) == std::string_view::npos) word += c;
      word += next, is_in_word = true, ++i;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c, is_in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (is_in_word) words.push_back(word);
      word.clear(), is_in_word = false;
    } else if (std::string_view(";&|<>()*?{").find(c) != std::string_view::npos || (c == '#' && !is_in_word)) {
      return std::nullopt;
    } else {
      word += c, is_in_word = true;
    }
  }
  if (quote) return std::nullopt;
  if (is_in_word) words.push_back(word);
  return words;
}

}  // namespace assay::host::batch
