#include "launch/oom_kills.hpp"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace assay::host::launch {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::uint64_t oom_kills_in(std::string_view text) {
  constexpr std::string_view key = "oom_kill ";
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    if (line.substr(0, key.size()) == key) {
      std::uint64_t count = 0;
      std::from_chars(line.data() + key.size(), line.data() + line.size(), count);
      return count;
    }
    if (newline == std::string_view::npos) break;
    text.remove_prefix(newline + 1);
  }
  return 0;
}

std::uint64_t oom_kill_count() {
  std::uint64_t count = oom_kills_in(text_of("/proc/vmstat"));
  // Lines "id:controllers:path": v2 has id 0 and no controllers, v1 names the memory controller.
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const bool v2 = controllers.empty();
    if (!v2 && controllers != "memory") continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string file = v2 ? "/memory.events" : "/memory.oom_control";
    std::string found = text_of(root + path + file);
    // In a container the path is the outer one and the mount shows the group itself as its root.
    if (found.empty()) found = text_of(root + file);
    count += oom_kills_in(found);
  }
  return count;
}

}  // namespace assay::host::launch
