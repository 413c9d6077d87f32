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

// What each of several steps held at most, of the sum of all kinds.
struct StepPeaks {
  std::int64_t steps = 0;
  std::int64_t sum = 0, min = 0, max = 0;  // bytes; min and max mean nothing without steps
  double mean() const { return static_cast<double>(sum) / static_cast<double>(steps); }
};

// Safe to use from several threads.
class MemoryLedger {
 public:
  void add(std::size_t kind, std::int64_t delta_bytes);
  void moment(std::string name);
  // Between steps, and without allocating: the first one begins; one has ended, and the next begins.
  void begin_steps();
  std::int64_t end_step();  // the peak of the step that has ended

  MemoryAmounts current() const;
  MemoryAmounts peak() const;    // over the whole case
  MemoryAmounts lowest() const;  // at any time, at most 0; below it, more was given up than had been taken
  std::int64_t peak_total() const;
  StepPeaks step_peaks() const;
  std::vector<MemoryMoment> moments() const;

 private:
  mutable std::mutex mutex_;
  MemoryAmounts current_, peak_, lowest_, peak_since_moment_;
  std::int64_t peak_total_ = 0, peak_total_since_moment_ = 0, peak_total_since_step_ = 0;
  StepPeaks step_peaks_;
  std::vector<MemoryMoment> moments_;
};

}  // namespace assay::host::measure
