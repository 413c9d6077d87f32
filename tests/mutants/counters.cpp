#include "counters.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace assay::mutants {

void give_up(const std::string& text) {
  std::fprintf(stderr, "the library of mutants: %s\n", text.c_str());
  std::abort();
}

std::string_view living_mutant() {
  static const std::string name = [] {
    const char* const value = std::getenv("ASSAY_MUTANT");
    return std::string(value ? value : "");
  }();
  return name;
}

Counters::Counters(std::size_t first, std::size_t count) {
  const char* file = std::getenv("ASSAY_MUTANT_COUNTS");
  if (!file || !*file) return;
  const int fd = open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) give_up(std::string("cannot open ") + file);
  void* const memory =
      mmap(nullptr, (first + count) * sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) give_up(std::string("cannot map ") + file);
  counters_ = static_cast<std::uint64_t*>(memory) + first;
}

void Counters::count(std::size_t index) const {
  if (counters_) std::atomic_ref(counters_[index]).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace assay::mutants
