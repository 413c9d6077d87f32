// One run's figure: the statistic of its steps, and how far the steps themselves let that be off.
#pragma once
#include "compare/verdict.hpp"

#include <cstddef>
#include <vector>

namespace assay::host::compare {

struct Located {
  double log_value = 0;
  double variance = 0;  // of log_value, by the run's own steps
  double freedom = 1;   // degrees, of that variance
  double restless = 0;  // how far its steps, few as they are, let the run itself be off
  // The variance by its own steps, had they nothing to do with one another: the least that runs among several differ
  // by.
  double least_variance = 0;
  bool spread_known = true;
};

// A low percentile of few steps lies nearer to the others than one of many: of 10 it is close to the shortest of 10. So
// it is taken of as many consecutive steps on both sides: `steps_each`; a longer run has several such stretches,
// and the geometric mean over these counts. 0: of all steps, however many.
Located locate(const RunFigure& run, Statistic statistic, std::size_t steps_each = 0);

// Its value alone.
double locate_alone(const RunFigure& run, Statistic statistic, std::size_t steps_each = 0);

// How much slow steps add: the log of the mean over the 5th percentile. Other states of a machine leave it as it is.
Located locate_tail(const RunFigure& run, std::size_t steps_each = 0);

// The fewest steps that a run of both sides has samples of; 0 where none has two.
std::size_t fewest_steps(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b);

// The log of the statistic, of as many consecutive samples as said above.
double log_location(const std::vector<double>& samples, Statistic statistic, std::size_t steps_each);

}  // namespace assay::host::compare
