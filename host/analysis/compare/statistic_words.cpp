#include "compare/statistic_words.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "common/usage_error.hpp"

namespace assay::host::compare {
namespace {

constexpr std::array words{std::pair{Statistic::mean, "mean"}, std::pair{Statistic::p05, "p05"},
                           std::pair{Statistic::lower_quartile, "lower-quartile"},
                           std::pair{Statistic::median, "median"}};

}  // namespace

std::string word_of(Statistic statistic) {
  for (const auto& [known, word] : words)
    if (known == statistic) return word;
  return "";
}

Statistic statistic_of(const std::string& word) {
  for (const auto& [statistic, known] : words)
    if (known == word) return statistic;
  throw UsageError(fmt::format("--statistic is '{}'; expected mean, p05, lower-quartile or median", word));
}

double share_of(const char* option, double percent, double low, double high) {
  if (!(percent >= low && percent <= high))
    throw UsageError(fmt::format("--{} is {}; expected a percentage from {} to {}", option, percent, low, high));
  return percent / 100;
}

}  // namespace assay::host::compare
