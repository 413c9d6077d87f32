#include "wireup/rank_list.hpp"

#include <fmt/format.h>

#include <vector>

#include "common/text_format.hpp"

namespace assay::host::wireup {

std::string ranks_text(std::span<const std::int32_t> ascending) {
  return (ascending.size() == 1 ? "rank " : "ranks ") +
         number_list(std::vector<std::int64_t>(ascending.begin(), ascending.end()));
}

std::string seconds_text(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", std::chrono::duration<double>(duration).count());
}

}  // namespace assay::host::wireup
