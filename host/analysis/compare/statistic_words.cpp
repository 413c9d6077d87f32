#include "compare/statistic_words.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "common/suggest.hpp"
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
  std::vector<std::string> known;
  for (const auto& each : words) known.emplace_back(each.second);
  const std::string meant = did_you_mean(word, known);
  throw UsageError(fmt::format("--statistic is '{}'{} mean, p05, lower-quartile or median", word,
                               meant.empty() ? "; expected" : meant + " Expected"));
}

double share_of(const char* option, double percent, double low, double high) {
  if (!(percent >= low && percent <= high))
    throw UsageError(fmt::format("--{} is {}; expected a percentage from {} to {}", option, percent, low, high));
  return percent / 100;
}

}  // namespace assay::host::compare
