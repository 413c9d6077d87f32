#include "words.hpp"

#include <assay/plugin.hpp>

#include <algorithm>
#include <cctype>

namespace command {
namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// The end of the name that begins at `begin`, where '}' follows it; npos where there is no name.
std::size_t end_of_name(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_of_name(text[end])) ++end;
  const bool begins_well = begin < text.size() && std::isdigit(static_cast<unsigned char>(text[begin])) == 0;
  return begins_well && end > begin && end < text.size() && text[end] == '}' ? end : std::string_view::npos;
}

}  // namespace

std::vector<std::string> words_of(std::string_view line, std::string_view parameter) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < line.size();) {
    if (is_blank(line[i])) {
      ++i;
      continue;
    }
    std::string& word = words.emplace_back();
    char quote = '\0';
    for (; i < line.size() && (quote != '\0' || !is_blank(line[i])); ++i) {
      const char c = line[i];
      const bool is_escape = c == '\\' && quote != '\'' && i + 1 < line.size() &&
                             (quote == '\0' || line[i + 1] == '"' || line[i + 1] == '\\');
      if (is_escape)
        word += line[++i];
      else if (c == quote)
        quote = '\0';
      else if (quote == '\0' && (c == '"' || c == '\''))
        quote = c;
      else
        word += c;
    }
    if (quote != '\0')
      throw assay::Error(ASSAY_INVALID_ARGUMENT, "parameter '" + std::string(parameter) + "' has a quote " + quote +
                                                     " that is not closed; close it, or give an array of strings");
  }
  return words;
}

std::string filled(std::string_view text, const std::function<std::string(std::string_view name)>& value) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool is_double = text.substr(i, 2) == "{{";
    const std::size_t begin = i + (is_double ? 2 : 1);
    const std::size_t end = text[i] == '{' ? end_of_name(text, begin) : std::string_view::npos;
    if (end == std::string_view::npos || (is_double && text.substr(end, 2) != "}}")) {
      out += text[i++];
      continue;
    }
    const std::string_view name = text.substr(begin, end - begin);
    out += is_double ? "{" + std::string(name) + "}" : value(name);
    i = end + (is_double ? 2 : 1);
  }
  return out;
}

}  // namespace command
