#include "cli/statistic_option.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "cli/options.hpp"

namespace assay::host::cli {
namespace {

using compare::Statistic;

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

}  // namespace assay::host::cli
