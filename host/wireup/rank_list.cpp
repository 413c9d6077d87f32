#include "wireup/rank_list.hpp"

#include <fmt/format.h>

#include <vector>

namespace assay::host::wireup {

std::string ranks_text(std::span<const std::int32_t> ascending) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ascending.size();) {
    std::size_t last = first;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    // Two neighbours read better as "1, 2" than as "1 to 2".
    if (last == first + 1) last = first;
    parts.push_back(first == last ? fmt::format("{}", ascending[first])
                                  : fmt::format("{} to {}", ascending[first], ascending[last]));
    first = last + 1;
  }
  std::string text = ascending.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string seconds_text(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace assay::host::wireup
