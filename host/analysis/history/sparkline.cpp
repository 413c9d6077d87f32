#include "history/sparkline.hpp"

#include <algorithm>
#include <cmath>

namespace assay::host::history {

std::string sparkline(const std::vector<double>& figures, std::size_t width) {
  constexpr const char* heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr int count = 8;
  constexpr double least_span = 0.02;
  if (figures.empty() || width == 0) return "";
  const std::size_t columns = std::min(width, figures.size());
  std::vector<double> means;
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t begin = column * figures.size() / columns, end = (column + 1) * figures.size() / columns;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += std::log(figures[i]);
    means.push_back(sum / static_cast<double>(end - begin));
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const double span = std::max(least_span, *high - *low);
  // What spans less than the scale stands in the middle of it: the fourth height, where nothing differs.
  const double base = 3.5 * (1 - (*high - *low) / span);
  std::string line;
  for (const double mean : means) {
    const double height = base + (mean - *low) / span * count;
    line += heights[std::clamp(static_cast<int>(height), 0, count - 1)];
  }
  return line;
}

}  // namespace assay::host::history
