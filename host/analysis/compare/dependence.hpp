// How far the mean of a run's steps may be off, where each step resembles the one before.
#pragma once
#include <vector>

namespace assay::host::compare {

struct ErrorOfMean {
  double variance = 0;        // of the logarithm of the mean
  double freedom = 1;         // degrees, of that variance
  double if_independent = 0;  // the variance that as many independent steps would have
};

// At least two samples, of a mean above 0.
//
// The steps are taken for an autoregressive process of order 1: its mean over n steps has the variance
// s^2 (1 + 2 sum (1 - k/n) r^k) / n, and the spread within the run is smaller than s^2 by that. The correlation r is
// that of neighbours, corrected for its bias in short series (Marriott and Pope, Biometrika 41, 1954; Kendall, the
// same), and one standard error more. Of fewer than `fewest_steps_that_show_dependence` nobody knows it: it is taken
// for 0.95. A run that drifts from its begin to its end by more than chance may have any level that it passed: half of
// the drift is an error, too.
inline constexpr int fewest_steps_that_show_dependence = 20;
ErrorOfMean error_of_mean(const std::vector<double>& samples);

}  // namespace assay::host::compare
