// How much neighbouring samples resemble each other, and so how many independent ones they are worth.
//
// Steps do not forget what was before them: clocks, caches and neighbours change slowly. The mean of n such samples is
// known as well as that of n / tau independent ones. tau, the autocorrelation time, is the larger of two estimates. One
// is from the correlation of direct neighbours, as if each sample were a share of the one before and something new
// (corrected for its bias, which matters below 50 samples). The other is from the sum of all correlations up to where
// they vanish in noise (Geyer's initial positive sequence), which also sees what lasts longer.
// tests/unit/measure/coverage_test.cpp holds the intervals that follow from it to their promise.
#pragma once
#include <cstddef>
#include <span>

namespace assay::host::measure {

struct Correlation {
  double lag1 = 0;         // of direct neighbours, as found; 0 below 3 samples or where nothing varies
  double effective_n = 0;  // n / tau, at least 2 where there are 2 samples
};

Correlation correlation_of(std::span<const double> samples);

}  // namespace assay::host::measure
