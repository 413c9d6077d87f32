#include "waiting_threads.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace assay::cpu {

std::uint64_t waited_for_processor_ns(const std::string& root) {
  std::uint64_t sum_ns = 0;
  std::error_code error;
  std::filesystem::directory_iterator task(root + "/proc/self/task", error);
  for (; !error && task != std::filesystem::directory_iterator(); task.increment(error)) {
    std::ifstream in(task->path() / "schedstat");
    std::uint64_t on_processor_ns = 0, waited_ns = 0;
    if (in >> on_processor_ns >> waited_ns) sum_ns += waited_ns;
  }
  return sum_ns;
}

}  // namespace assay::cpu
