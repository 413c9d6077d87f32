// The history of a case's device memory, and the snapshot file that PyTorch's memory viewer (memory_viz) opens.
//
// Each block that the workload takes is a segment. A workload that plans an arena (assay.memory_plan/1) makes no calls
// at run time that could be recorded, so its tensors appear as the plan has them: after the recorded events follows one
// step in the order of the plan's moments, and a second one up to the moment at which most bytes are alive. The times
// of these events, a microsecond apart, are made up. The blocks of the segment are those of that last moment.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host::profile {

struct PlannedBuffer {
  std::string name;
  std::uint64_t offset = 0, bytes = 0;  // in the arena
  std::int32_t first = 0, last = 0;     // moments of the step, both included
};

// Used by one thread.
class MemoryHistory {
 public:
  using Clock = std::chrono::system_clock;

  void allocated(std::uint64_t address, std::uint64_t bytes, std::size_t kind, std::string_view label,
                 Clock::time_point now = Clock::now());
  void released(std::uint64_t address, Clock::time_point now = Clock::now());
  void refused(std::uint64_t bytes, std::uint64_t free_bytes, std::size_t kind, std::string_view label,
               Clock::time_point now = Clock::now());
  // False when the arena is not held, or the buffer does not lie in it: then nothing is noted.
  bool planned(std::uint64_t arena, PlannedBuffer buffer);

  // What happened so far, as a pickle.
  std::string snapshot(std::int32_t device) const;

 private:
  enum class Action { alloc, release, oom };
  struct Event {
    Action action;
    std::uint64_t address;  // of an oom: the bytes that were free
    std::uint64_t bytes;
    std::int64_t time_us;
    std::size_t kind;
    std::string label;
  };
  struct Arena {
    std::uint64_t bytes;
    std::size_t kind;
    std::string label;
    std::vector<PlannedBuffer> plan;  // empty: one block
  };
  class Pickler;

  std::vector<Event> events_;
  std::map<std::uint64_t, Arena> held_;  // by address
};

}  // namespace assay::host::profile
