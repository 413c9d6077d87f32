// A comparison's column of the baseline shows the figure of one side by itself.
#pragma once
#include <cstddef>

#include "compare/verdict.hpp"

namespace assay::host::compare {

struct FigureAlone {
  double value = 0;  // as TestResult::value_a beside a side that gives as much
  std::size_t runs = 0;
  Statistic statistic = Statistic::mean;
  bool by_samples = true;
};
FigureAlone figure_alone(const TestedSide& side, const TestOptions& options);

}  // namespace assay::host::compare
