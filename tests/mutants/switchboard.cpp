#include "switchboard.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace assay::mutants {
namespace {

constexpr std::size_t none = mutants.size();

// Nothing that is measured here is worth a wrong table: what cannot be read ends the process.
[[noreturn]] void give_up(const std::string& text) {
  std::fprintf(stderr, "the library of mutants: %s\n", text.c_str());
  std::abort();
}

class Switchboard {
 public:
  Switchboard() : alive_(named()), counters_(shared_counters()) {}

  bool lives(std::size_t mutant) const { return alive_ == mutant; }
  bool reached(std::size_t mutant) const {
    if (alive_ != none && alive_ != mutant) return false;
    if (counters_) std::atomic_ref(counters_[mutant]).fetch_add(1, std::memory_order_relaxed);
    return alive_ == mutant;
  }

 private:
  static std::size_t named() {
    const char* name = std::getenv("ASSAY_MUTANT");
    if (!name || !*name) return none;
    for (std::size_t i = 0; i < mutants.size(); ++i)
      if (mutants[i].name == name) return i;
    give_up(std::string("there is no mutant '") + name + "'");
  }
  static std::uint64_t* shared_counters() {
    const char* file = std::getenv("ASSAY_MUTANT_COUNTS");
    if (!file || !*file) return nullptr;
    const int fd = open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0) give_up(std::string("cannot open ") + file);
    void* const memory =
        mmap(nullptr, mutants.size() * sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) give_up(std::string("cannot map ") + file);
    return static_cast<std::uint64_t*>(memory);
  }

  std::size_t alive_;
  std::uint64_t* counters_;  // mapped until the process ends
};

const Switchboard& switchboard() {
  static const Switchboard instance;
  return instance;
}

}  // namespace

bool breaks(MutantId mutant) { return switchboard().reached(mutant.index()); }
bool lives(MutantId mutant) { return switchboard().lives(mutant.index()); }

}  // namespace assay::mutants
