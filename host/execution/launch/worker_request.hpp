// A host's request to one worker, and the outcome of it.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/board.hpp"
#include "launch/event_reader.hpp"
#include "launch/process.hpp"

namespace assay::host::launch {

// Says how a worker is started (without `board_fd`: the host makes the board), and how it is watched.
struct WorkerRequest : SpawnRequest {
  std::vector<std::string> phase_names;                   // for the reason's words
  std::optional<std::uint64_t> memory_limit_bytes;        // of its resident memory, with all that it starts
  std::function<void(const std::string& line)> on_event;  // each event as it comes; may be empty
  // From the beginning of `destroy`, its result being given, to its end. One that takes longer is killed, and its
  // result stands.
  std::chrono::milliseconds teardown_timeout{30'000};
  bool is_wrapped = false;  // by a profiler, whose own helpers are no processes of the workload
};

enum class WorkerStatus {
  finished,     // sent a result; how it ended after that is for `end_note`
  timeout,      // no result in time
  crashed,      // died of a signal, or exited, without a result
  oom,          // went over the memory limit, or the kernel killed it for want of memory
  interrupted,  // the host was asked to stop
  ended,        // in a group: ended by the host because another rank failed, or after it had reported a failure
};
const char* name_of(WorkerStatus status);

struct WorkerOutcome {
  WorkerStatus status = WorkerStatus::crashed;
  std::string reason;  // "" when finished
  int signal = 0;      // that ended the process; 0: it exited
  BoardView where;     // where it was last
  std::string phase;   // the name of where.phase, "" outside every phase
  WorkerEvents events;
  double wall_s = 0;                 // from before the start to after the last process was reaped
  std::uint64_t peak_rss_bytes = 0;  // of the worker and what it started; no less than the host's own size at the start
  // The most that the worker and the processes that it had started were seen to hold together before its verification;
  // 0 where none was seen.
  std::uint64_t peak_with_children_bytes = 0;
  std::vector<std::string> log_tail;  // the last 20 lines of this worker's part of the log
  std::string log_note;               // that the log was cut, in words; "": it is whole
  std::string end_note;               // that it died or hung after its result, and where, in words; "": it ended well
  std::string left_note;              // that it left processes running, in words; "": it did not
};

}  // namespace assay::host::launch
