#include "launch/child_memory.hpp"

#include "common/process_tree.hpp"

namespace assay::host::launch {
namespace {

constexpr std::chrono::milliseconds added_up_for{250};

}  // namespace

std::uint64_t ChildMemory::resident_bytes(Clock::time_point now) {
  if (now - looked_at_ >= interval_) {
    looked_at_ = now;
    known_ = descendants_of(worker_, adopter_, entry_);
  }
  std::uint64_t bytes = 0;
  for (const pid_t pid : known_) bytes += resident_bytes_of(pid);
  return bytes;
}

std::uint64_t ChildMemory::bytes_with_worker(Clock::time_point now) {
  if (now - added_up_at_ < added_up_for) return added_up_bytes_;
  added_up_at_ = now;
  added_up_bytes_ = proportional_bytes_of(worker_);
  for (const pid_t pid : known_) added_up_bytes_ += proportional_bytes_of(pid);
  return added_up_bytes_;
}

}  // namespace assay::host::launch
