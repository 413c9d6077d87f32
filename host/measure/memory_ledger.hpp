// The account of a case's device memory by kind: what is held, what was held at most, and both at named moments.
#pragma once
#include "common/memory_kinds.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace assay::host::measure {

struct MemoryAmounts {
  std::array<std::int64_t, memory_kind_count> bytes{};
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t b : bytes) sum += b;
    return sum;
  }
};

struct MemoryMoment {
  std::string name;
  MemoryAmounts current;
  MemoryAmounts peak;           // by kind, each since the moment before
  std::int64_t peak_total = 0;  // of the sum: kinds may peak at different times
};

// Safe to use from several threads.
class MemoryLedger {
 public:
  void add(std::size_t kind, std::int64_t delta_bytes);
  void moment(std::string name);

  MemoryAmounts current() const;
  MemoryAmounts peak() const;  // over the whole case
  std::int64_t peak_total() const;
  std::vector<MemoryMoment> moments() const;

 private:
  mutable std::mutex mutex_;
  MemoryAmounts current_, peak_, peak_since_moment_;
  std::int64_t peak_total_ = 0, peak_total_since_moment_ = 0;
  std::vector<MemoryMoment> moments_;
};

}  // namespace assay::host::measure
