#include "measure/memory_ledger.hpp"

#include <algorithm>

namespace assay::host::measure {

void MemoryLedger::add(std::size_t kind, std::int64_t delta_bytes) {
  const std::lock_guard lock(mutex_);
  const std::int64_t now = current_.bytes[kind] += delta_bytes;
  peak_.bytes[kind] = std::max(peak_.bytes[kind], now);
  peak_since_moment_.bytes[kind] = std::max(peak_since_moment_.bytes[kind], now);
  const std::int64_t total = current_.total();
  peak_total_ = std::max(peak_total_, total);
  peak_total_since_moment_ = std::max(peak_total_since_moment_, total);
}

void MemoryLedger::moment(std::string name) {
  const std::lock_guard lock(mutex_);
  moments_.push_back({std::move(name), current_, peak_since_moment_, peak_total_since_moment_});
  peak_since_moment_ = current_;
  peak_total_since_moment_ = current_.total();
}

MemoryAmounts MemoryLedger::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}
MemoryAmounts MemoryLedger::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}
std::int64_t MemoryLedger::peak_total() const {
  const std::lock_guard lock(mutex_);
  return peak_total_;
}
std::vector<MemoryMoment> MemoryLedger::moments() const {
  const std::lock_guard lock(mutex_);
  return moments_;
}

}  // namespace assay::host::measure
