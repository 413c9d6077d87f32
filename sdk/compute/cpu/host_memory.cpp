#include "host_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

namespace assay::cpu {
namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// An allocation that took the last byte would get this process, or a neighbour, killed. This much is never offered.
constexpr std::uint64_t reserve_bytes = 64ull << 20;

std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream in(path);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

// The number behind `key` in a file of "key value" lines.
std::optional<std::uint64_t> read_field(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  std::string name, rest;
  std::uint64_t value = 0;
  while (in >> name >> value) {
    if (name == key) return value;
    std::getline(in, rest);
  }
  return std::nullopt;
}

struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* cache_field;  // page cache that the kernel gives back before it refuses memory
};
constexpr GroupFiles group_v1{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file"};
constexpr GroupFiles group_v2{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// The tightest of the group and its ancestors. Inside a container the group's path is often not mounted: then only the
// ancestors that exist (the mount's root is the container's own group) count.
std::uint64_t group_free_bytes(const std::string& root, const GroupFiles& files, std::string group) {
  std::uint64_t least = unlimited;
  for (;;) {
    const std::string folder = root + files.mount + group + "/";
    const auto limit = read_number(folder + files.limit);
    const auto usage = read_number(folder + files.usage);
    if (limit && usage) {
      const std::uint64_t cache = read_field(folder + "memory.stat", files.cache_field).value_or(0);
      const std::uint64_t held = *usage > cache ? *usage - cache : 0;
      least = std::min(least, *limit > held ? *limit - held : 0);
    }
    if (group.empty()) return least;
    group.erase(group.find_last_of('/'));
  }
}

std::uint64_t control_group_free_bytes(const std::string& root) {
  std::ifstream in(root + "/proc/self/cgroup");  // "id:controllers:/path"; version 2 is "0::/path"
  std::uint64_t least = unlimited;
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (!path.empty() && path.front() != '/') continue;
    if (controllers == ",,") least = std::min(least, group_free_bytes(root, group_v2, path));
    if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, group_free_bytes(root, group_v1, path));
  }
  return least;
}

}  // namespace

HostMemory read_host_memory(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo";
  HostMemory memory;
  memory.total_bytes = read_field(meminfo, "MemTotal:").value_or(0) * 1024;
  const std::uint64_t available = read_field(meminfo, "MemAvailable:").value_or(0) * 1024;
  const std::uint64_t free = std::min(available, control_group_free_bytes(root));
  memory.free_bytes = free > reserve_bytes ? free - reserve_bytes : 0;
  return memory;
}

namespace {

// What the kernel says of the first processor under `name`; empty when it does not.
std::string read_cpuinfo(const std::string& root, std::string_view name) {
  std::ifstream in(root + "/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != name) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    if (begin == std::string::npos) continue;
    return line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
  }
  return "";
}

}  // namespace

std::string read_cpu_model(const std::string& root) {
  const std::string model = read_cpuinfo(root, "model name");
  return model.empty() ? "CPU" : model;
}

std::string read_processor(const std::string& root) {
  std::string text = read_cpu_model(root);
  for (const auto& [name, told_as] : {std::pair("cpu family", "family"), {"model", "model"}, {"stepping", "stepping"}})
    if (const std::string value = read_cpuinfo(root, name); !value.empty())
      text += std::string(", ") + told_as + " " + value;
  return text;
}

}  // namespace assay::cpu
