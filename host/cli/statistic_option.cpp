#include "cli/statistic_option.hpp"

#include <fmt/format.h>

#include "cli/options.hpp"

namespace assay::host::cli {

compare::Statistic statistic_of(const std::string& name) {
  if (name == "p05") return compare::Statistic::p05;
  if (name == "lower-quartile") return compare::Statistic::lower_quartile;
  if (name == "median") return compare::Statistic::median;
  if (name == "mean") return compare::Statistic::mean;
  throw UsageError(fmt::format("--statistic is '{}'; expected mean, p05, lower-quartile or median", name));
}

}  // namespace assay::host::cli
