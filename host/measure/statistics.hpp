// From samples to the figures of a record.
#pragma once
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
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0;  // percentiles interpolate linearly between order statistics
  double ci_low = 0, ci_high = 0;             // Student's t interval of the mean
  double confidence = 0;
};

Statistics summarize(std::span<const double> samples, double confidence = 0.95);

// Half width of the mean's confidence interval over the mean; infinite below two samples.
double relative_error(std::span<const double> samples, double confidence);

// (mean of the last third - mean of the first third) / mean of all; nothing below six samples.
std::optional<double> drift(std::span<const double> samples);

}  // namespace assay::host::measure
