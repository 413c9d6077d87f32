// Many samples in a few numbers: what a page of limited size holds of the steps of a case.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::host::report {

// Samples that were chosen among others, and where they stood.
struct Thinned {
  std::vector<std::int64_t> places;  // from 0; empty: all samples are there
  std::vector<double> values;
};

// Samples, at most `most` of them (4 or more). The window is cut into stretches of like length; of each the shortest
// and the longest sample stay, so that no stall is lost. A sample that is no number stays out.
Thinned thinned(std::span<const double> samples, std::size_t most);

inline constexpr std::array<double, 7> shown_quantiles{0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};

// How all samples are spread, thinned or not.
struct Distribution {
  std::array<double, shown_quantiles.size()> quantiles{};
  std::vector<std::int64_t> counts;  // in bins of equal width from the first quantile to the last
};

// Empty counts where there are no samples that are numbers; one bin where they are all the same.
Distribution distribution_of(std::span<const double> samples, std::size_t bins);

// How many samples of each case fit a page on which `all` may stand.
std::size_t samples_of_each_case(std::size_t cases, std::size_t all);

}  // namespace assay::host::report
