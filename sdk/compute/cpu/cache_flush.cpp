#include "cache_flush.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>

namespace assay::cpu {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// "32768K", "1M"; 0 for anything else.
std::size_t bytes_of(const std::string& size) {
  const std::size_t digits = std::min(size.find_first_not_of("0123456789"), size.size());
  if (digits == 0 || digits > 9) return 0;
  const std::size_t unit = size.substr(digits) == "K"   ? std::size_t{1} << 10
                           : size.substr(digits) == "M" ? std::size_t{1} << 20
                                                        : 1;
  return std::stoul(size.substr(0, digits)) * unit;
}

struct Cache {
  int level = 0;
  std::string shared_by;  // processors: distinguishes two caches of a level
  std::size_t bytes = 0;
};

Cache last_level_of(int processor) {
  Cache last;
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/cache/index";
  for (int index = 0; index < 8; ++index) {
    const std::string cache = folder + std::to_string(index);
    const std::string level = text_of(cache + "/level");
    if (level.empty()) break;
    const int found = std::atoi(level.c_str());
    if (found > last.level && text_of(cache + "/type") != "Instruction")
      last = {found, text_of(cache + "/shared_cpu_list"), bytes_of(text_of(cache + "/size"))};
  }
  return last;
}

}  // namespace

std::size_t last_level_cache_bytes() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  std::map<std::string, std::size_t> caches;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &usable)) {
      const Cache cache = last_level_of(processor);
      if (cache.bytes > 0) caches[cache.shared_by] = cache.bytes;
    }
  std::size_t total = 0;
  for (const auto& [shared_by, bytes] : caches) total += bytes;
  if (total > 0) return total;
  for (const int name : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(name); bytes > 0) return static_cast<std::size_t>(bytes);
  return 0;
}

std::uint64_t walk_through(const void* address, std::size_t bytes) {
  const auto* const first = static_cast<const volatile std::uint64_t*>(address);
  const auto lines = static_cast<std::int64_t>(bytes / cache_line_bytes);
  std::uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (std::int64_t line = 0; line < lines; ++line)
    sum += first[static_cast<std::size_t>(line) * (cache_line_bytes / sizeof *first)];
  return sum;
}

}  // namespace assay::cpu
