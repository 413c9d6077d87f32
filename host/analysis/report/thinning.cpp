#include "report/thinning.hpp"

#include <algorithm>
#include <cmath>

namespace assay::host::report {
namespace {

std::vector<double> numbers_in(std::span<const double> samples) {
  std::vector<double> numbers;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(numbers), [](double s) { return std::isfinite(s); });
  return numbers;
}

// As the statistics of a record: linear between the two samples beside the place.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

Thinned thinned(std::span<const double> samples, std::size_t most) {
  Thinned out;
  const bool all_are_numbers = std::all_of(samples.begin(), samples.end(), [](double s) { return std::isfinite(s); });
  if (samples.size() <= most && all_are_numbers) {
    out.values.assign(samples.begin(), samples.end());
    return out;
  }
  const auto keep = [&](std::size_t place) {
    out.places.push_back(static_cast<std::int64_t>(place));
    out.values.push_back(samples[place]);
  };
  if (samples.size() <= most) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (std::isfinite(samples[i])) keep(i);
    return out;
  }
  const std::size_t stretches = std::max<std::size_t>(most / 2, 1);
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t begin = stretch * samples.size() / stretches, end = (stretch + 1) * samples.size() / stretches;
    std::size_t shortest = end, longest = end;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(samples[i])) continue;
      if (shortest == end || samples[i] < samples[shortest]) shortest = i;
      if (longest == end || samples[i] > samples[longest]) longest = i;
    }
    if (shortest == end) continue;
    keep(std::min(shortest, longest));
    if (shortest != longest) keep(std::max(shortest, longest));
  }
  return out;
}

Distribution distribution_of(std::span<const double> samples, std::size_t bins) {
  Distribution out;
  std::vector<double> sorted = numbers_in(samples);
  std::erase_if(sorted, [](double sample) { return !std::isfinite(sample); });
  if (sorted.empty()) return out;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < shown_quantiles.size(); ++i) out.quantiles[i] = quantile(sorted, shown_quantiles[i]);
  const double low = sorted.front(), width = sorted.back() - low;
  const bool has_width = width > 0 && std::isfinite(width);
  out.counts.assign(has_width ? bins : 1, 0);
  for (const double sample : sorted) {
    const auto bin = has_width ? static_cast<std::size_t>((sample - low) / width * static_cast<double>(bins)) : 0;
    ++out.counts[std::min(bin, out.counts.size() - 1)];
  }
  return out;
}

std::size_t samples_of_each_case(std::size_t cases, std::size_t all) {
  constexpr std::size_t least = 8, most = 600;
  return std::clamp(all / std::max<std::size_t>(cases, 1), least, most) / 2 * 2;
}

}  // namespace assay::host::report
