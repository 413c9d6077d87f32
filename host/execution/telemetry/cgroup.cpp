#include "telemetry/cgroup.hpp"

#include "telemetry/text_files.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace assay::host::telemetry {
namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

bool names_controller(std::string_view list, std::string_view controller) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == controller) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

// The folders to look in, from the process's own group up to the root. Within a container the path that /proc names may
// lie outside of what is mounted; the root is then the container's own group.
std::vector<std::filesystem::path> group_folders(const std::filesystem::path& root, std::string_view controller) {
  std::vector<std::filesystem::path> folders;
  const auto add = [&folders](const std::filesystem::path& mount, std::string_view group) {
    std::filesystem::path below = std::filesystem::path(group).relative_path().lexically_normal();
    while (!below.empty()) {
      folders.push_back(mount / below);
      below = below.parent_path();
    }
    folders.push_back(mount);
  };
  const auto mounts = root / "sys/fs/cgroup";
  for_each_line(read_text(root / "proc/self/cgroup").value_or(""), [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    const std::string_view controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) {
      add(mounts, group);
      add(mounts / "unified", group);
    } else if (names_controller(controllers, controller)) {
      add(mounts / std::string(controllers), group);
      add(mounts / std::string(controller), group);
    }
  });
  return folders;
}

template <class T>
void keep_smaller(std::optional<T>& smallest, T value) {
  smallest = smallest ? std::min(*smallest, value) : value;
}

}  // namespace

std::optional<double> cgroup_cpu_quota_cores(const std::filesystem::path& root) {
  std::optional<double> smallest;
  for (const auto& folder : group_folders(root, "cpu")) {
    std::optional<std::uint64_t> quota_us, period_us;
    if (const auto text = read_text(folder / "cpu.max")) {  // "<quota or max> <period>"
      const std::size_t blank = text->find(' ');
      quota_us = number_of(*text);
      if (blank != std::string::npos) period_us = number_of(std::string_view(*text).substr(blank + 1));
    } else if (const auto quota = read_text(folder / "cpu.cfs_quota_us")) {  // -1: none
      quota_us = number_of(*quota);
      period_us = number_of(read_text(folder / "cpu.cfs_period_us").value_or(""));
    }
    if (quota_us && period_us && *quota_us > 0 && *period_us > 0)
      keep_smaller(smallest, static_cast<double>(*quota_us) / static_cast<double>(*period_us));
  }
  return smallest;
}

std::optional<std::uint64_t> cgroup_memory_limit_bytes(const std::filesystem::path& root) {
  std::optional<std::uint64_t> smallest;
  for (const auto& folder : group_folders(root, "memory"))
    for (const char* file : {"memory.max", "memory.limit_in_bytes"})
      if (const auto text = read_text(folder / file))
        if (const auto bytes = number_of(*text)) keep_smaller(smallest, *bytes);
  return smallest;
}

std::size_t count_of_list(std::string_view list) {
  std::size_t count = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const std::size_t dash = item.find('-');
    const auto first = number_of(item);
    const auto last = dash == std::string_view::npos ? first : number_of(item.substr(dash + 1));
    if (!first || !last || *last < *first) return 0;
    count += static_cast<std::size_t>(*last - *first) + 1;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return count;
}

}  // namespace assay::host::telemetry
