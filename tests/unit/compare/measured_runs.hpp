// What the tests of verdicts compare: a run by its steps, and the options of one by its undisturbed ones.
#pragma once
#include <utility>
#include <vector>

#include "compare/verdict.hpp"

namespace assay::host::compare {

inline RunFigure measured(std::vector<double> samples) {
  RunFigure figure;
  figure.samples = std::move(samples);
  figure.mean = location(figure.samples, Statistic::mean);
  figure.timed = true;
  return figure;
}

inline TestOptions by_undisturbed_steps() {
  TestOptions options;
  options.statistic = Statistic::p05;
  return options;
}

}  // namespace assay::host::compare
