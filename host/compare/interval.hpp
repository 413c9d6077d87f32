// How far the ratio of two sides may be off. Everything is in logarithms.
#pragma once
#include "compare/location.hpp"
#include "compare/verdict.hpp"

#include <vector>

namespace assay::host::compare {

// The center, and two errors of it: what was measured, with Student's t by its degrees of freedom, and what is assumed
// however well few runs agree, as known. The larger one counts.
struct Interval {
  double center = 0;  // of log(B / A)
  double measured_error = 0, freedom = 1;
  double assumed_error = 0;
  bool known = true;

  double half(double confidence) const;
  // The chance that the center lies at least so far from 0 where the sides do not differ.
  double chance_of(double distance) const;
};

// Both sides have runs; they are all exact, or none is.
Interval interval_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic,
                     const TestOptions& options);

// What runs_to_settle() goes by, as these runs have shown it.
Scatter scatter_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic,
                   const TestOptions& options);

// The interval that so many runs a side would have.
Interval expected_interval(const Scatter& scatter, std::size_t runs);

}  // namespace assay::host::compare
