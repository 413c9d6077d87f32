// How far the ratio of two sides may be off. Everything is in logarithms.
#pragma once
#include "compare/location.hpp"
#include "compare/verdict.hpp"

#include <vector>

namespace assay::host::compare {

// The center, and two errors of it: what was measured, with Student's t by its degrees of freedom, and what is assumed
// however well few runs agree, as known. The larger one counts.
//
// Both take the figures of runs for normal, and a machine with two states is not: it may have been in one for all runs
// of A and in the other for all of B. So the chance of a distance has two parts, that of the errors and that of the
// states, and the second counts for distances that states explain.
struct Interval {
  double center = 0;  // of log(B / A)
  double measured_error = 0, freedom = 1;
  double assumed_error = 0;
  bool known = true;
  double states = 0;         // how far two states of the machine may lie apart
  double state_chance = 0;   // that they alone set so many runs of the sides apart
  std::vector<double> a, b;  // the figures of the runs

  double half(double confidence) const;
  // The chance that the center lies at least so far from 0 where the sides do not differ.
  double chance_of(double distance) const;
  double chance_by_errors(double distance) const;  // of a machine with one state

 private:
  double half_by_errors(double confidence) const;
};

// Both sides have runs; they are all exact, or none is.
Interval interval_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic,
                     const TestOptions& options);

// Its center alone.
double center_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic);

// That of how much slow steps add (locate_tail).
Interval interval_of_tails(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b,
                           const TestOptions& options);

// What runs_to_settle() goes by, as these runs have shown it.
Scatter scatter_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic,
                   const TestOptions& options);

// The interval that so many runs a side would have.
Interval expected_interval(const Scatter& scatter, std::size_t runs);

}  // namespace assay::host::compare
