#include "telemetry/cpu_nodes.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include "telemetry/contention.hpp"

namespace assay::host::telemetry {

std::int32_t cpu_node_count() {
  namespace fs = std::filesystem;
  const std::set<int> usable = usable_processors();
  std::int32_t count = 0;
  std::error_code error;
  for (fs::directory_iterator node("/sys/devices/system/node", error), end; !error && node != end;
       node.increment(error)) {
    const std::string name = node->path().filename();
    if (!name.starts_with("node") || name.find_first_not_of("0123456789", 4) != std::string::npos) continue;
    const bool has_one = std::any_of(usable.begin(), usable.end(), [&](int processor) {
      std::error_code ignored;
      return fs::exists(node->path() / ("cpu" + std::to_string(processor)), ignored);
    });
    count += has_one ? 1 : 0;
  }
  return std::max(count, 1);
}

}  // namespace assay::host::telemetry
