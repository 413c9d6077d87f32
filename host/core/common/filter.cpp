#include "common/filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

namespace assay::host {
namespace {

struct Sign {
  const char* text;
  Relation relation;
};
// Those of two letters first: "<=" begins with "<".
constexpr Sign signs[] = {
    {"!=", Relation::unequal}, {"<=", Relation::less_or_equal}, {">=", Relation::greater_or_equal},
    {"=", Relation::equal},    {"<", Relation::less},           {">", Relation::greater}};

std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::optional<double> number_in(const std::string& text) {
  if (text.empty() || text.find_first_not_of("+-0123456789.eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(text.c_str(), &end);
  if (errno != 0 || *end != '\0' || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool Filter::holds(double number) const {
  switch (relation) {
    case Relation::less: return number < bound;
    case Relation::less_or_equal: return number <= bound;
    case Relation::greater: return number > bound;
    case Relation::greater_or_equal: return number >= bound;
    case Relation::equal:
    case Relation::unequal: break;
  }
  return false;
}

Filter parse_filter(const std::string& text, const char* named) {
  const std::size_t at = text.find_first_of("=!<>");
  if (at == std::string::npos || at == 0)
    throw FilterSyntaxError(
        fmt::format("no {0} and value; expected {0}=value, as in size=small, or with !=, <, <=, >, >=", named));
  for (const Sign& sign : signs) {
    const std::string word = sign.text;
    if (text.compare(at, word.size(), word) != 0) continue;
    Filter filter{text.substr(0, at), sign.relation, text.substr(at + word.size()), {}, 0};
    if (!filter.is_ordering()) {
      filter.values = between_commas(filter.raw);
      return filter;
    }
    const std::optional<double> bound = number_in(filter.raw);
    if (!bound)
      throw FilterSyntaxError(
          fmt::format("'{}' is no number; expected one after {}, as in {}{}512", filter.raw, word, filter.key, word));
    filter.bound = *bound;
    return filter;
  }
  throw FilterSyntaxError(fmt::format("'!' without '='; expected {}!=value", text.substr(0, at)));
}

}  // namespace assay::host
