// From samples to the figures of a record.
#pragma once
#include "measure/correlation.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace assay::host::measure {

// All in the unit of the samples. Without samples n is 0 and the rest is NaN.
struct Statistics {
  std::size_t n = 0;
  double mean = 0, std = 0;  // sample standard deviation, n - 1; 0 for one sample
  double cv = 0;             // std / mean
  double min = 0, max = 0;
  // Percentiles interpolate linearly between order statistics. Nothing where fewer than one sample in n lies beyond:
  // such a figure would be the largest sample, whatever it is called.
  double p50 = 0;
  std::optional<double> p90, p95, p99;
  Correlation correlation;
  double ci_low = 0, ci_high = 0;  // Student's t interval of the mean, as wide as dependent samples make it
  double confidence = 0;
};

Statistics summarize(std::span<const double> samples, double confidence = 0.95);

// Half the width of that interval over the mean; infinite below two samples or for a mean of 0.
double relative_error(std::span<const double> samples, double confidence);
double relative_error(std::span<const double> samples, const Correlation& correlation, double confidence);

// (mean of the last third - mean of the first third) / mean of all; nothing below 6 samples.
std::optional<double> drift(std::span<const double> samples);

}  // namespace assay::host::measure
