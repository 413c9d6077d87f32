#include "measure/memory_ledger.hpp"

#include <algorithm>
#include <utility>

namespace assay::host::measure {

void MemoryLedger::add(std::size_t kind, std::int64_t delta_bytes) {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = current_.bytes[kind] += delta_bytes;
  peak_.bytes[kind] = std::max(peak_.bytes[kind], now);
  lowest_.bytes[kind] = std::min(lowest_.bytes[kind], now);
  peak_since_moment_.bytes[kind] = std::max(peak_since_moment_.bytes[kind], now);
  const std::int64_t total = current_.total();
  peak_total_ = std::max(peak_total_, total);
  peak_total_since_moment_ = std::max(peak_total_since_moment_, total);
  peak_total_since_step_ = std::max(peak_total_since_step_, total);
}

void MemoryLedger::moment(std::string name) {
  const std::lock_guard lock(mutex_);
  moments_.push_back({std::move(name), current_, peak_since_moment_, peak_total_since_moment_});
  peak_since_moment_ = current_;
  peak_total_since_moment_ = current_.total();
}

void MemoryLedger::begin_steps() {
  const std::lock_guard lock(mutex_);
  peak_total_since_step_ = current_.total();
}

std::int64_t MemoryLedger::end_step() {
  const std::lock_guard lock(mutex_);
  const std::int64_t peak = std::exchange(peak_total_since_step_, current_.total());
  step_peaks_.min = step_peaks_.steps == 0 ? peak : std::min(step_peaks_.min, peak);
  step_peaks_.max = std::max(step_peaks_.max, peak);
  step_peaks_.sum += peak;
  ++step_peaks_.steps;
  return peak;
}

MemoryAmounts MemoryLedger::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}
MemoryAmounts MemoryLedger::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}
MemoryAmounts MemoryLedger::lowest() const {
  const std::lock_guard lock(mutex_);
  return lowest_;
}

std::int64_t MemoryLedger::peak_total() const {
  const std::lock_guard lock(mutex_);
  return peak_total_;
}
StepPeaks MemoryLedger::step_peaks() const {
  const std::lock_guard lock(mutex_);
  return step_peaks_;
}
std::vector<MemoryMoment> MemoryLedger::moments() const {
  const std::lock_guard lock(mutex_);
  return moments_;
}

}  // namespace assay::host::measure
