#include "counters.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace assay::mutants {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// Of this process's case, from 0 on.
std::size_t repeat() {
  static const std::size_t number = [] {
    const std::string run = variable("ASSAY_MUTANT_RUN");
    // Before the first record there is no folder of that name.
    std::ifstream records(run.empty() ? "" : run + "/cases.jsonl", std::ios::binary);
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(records), {}, '\n'));
  }();
  return number;
}

}  // namespace

void give_up(const std::string& text) {
  std::fprintf(stderr, "the library of mutants: %s\n", text.c_str());
  std::abort();
}

std::string_view living_mutant() {
  static const std::string name = [] {
    std::istringstream text(variable("ASSAY_MUTANT"));
    const std::vector<std::string> names{std::istream_iterator<std::string>(text), {}};
    if (names.empty()) return std::string();
    if (repeat() >= names.size()) give_up("ASSAY_MUTANT has no mutant for repeat " + std::to_string(repeat() + 1));
    return names[repeat()];
  }();
  return name;
}

Counters::Counters(std::size_t first, std::size_t count) {
  std::string file = variable("ASSAY_MUTANT_COUNTS");
  if (file.empty()) return;
  file += std::to_string(repeat());
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) give_up("cannot open " + file);
  void* const memory =
      mmap(nullptr, (first + count) * sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) give_up("cannot map " + file);
  counters_ = static_cast<std::uint64_t*>(memory) + first;
}

void Counters::count(std::size_t index) const {
  if (counters_) std::atomic_ref(counters_[index]).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace assay::mutants
