// Runs one worker to its end and says what became of it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/board.hpp"
#include "launch/event_reader.hpp"
#include "launch/worker_log.hpp"

namespace assay::host {

struct WorkerRequest {
  std::filesystem::path executable;
  std::vector<std::string> arguments;                             // argv[1] and on
  std::map<std::string, std::optional<std::string>> environment;  // set; nothing: unset; the rest is inherited
  std::filesystem::path log_file;                                 // of standard output and error; appended to
  std::string spec;                                               // JSON text, what WorkerChannel::read_spec() returns
  std::vector<std::string> phase_names;                           // for the reason's words
  std::chrono::milliseconds timeout{0};                           // of the whole worker; 0: none
  std::optional<std::uint64_t> memory_limit_bytes;                // of the worker's resident memory
  std::vector<int> processors;                                    // the worker is bound to them; empty: to none
  std::uint64_t log_limit_bytes = default_log_limit_bytes;        // of what this worker adds to the log
  std::function<void(const std::string& line)> on_event;          // each event as it comes; may be empty
  int wake_fd = -1;                                               // InterruptHandler::wake_fd(): reacts without a tick
};

enum class WorkerStatus {
  finished,     // exited with code 0 after it had sent a result
  timeout,      // no result in time
  crashed,      // died of a signal, or exited without a result, or with a code other than 0
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
  double wall_s = 0;                  // from before the start to after the last process was reaped
  std::uint64_t peak_rss_bytes = 0;   // of the worker process; no less than the host's own size at the start
  std::vector<std::string> log_tail;  // the last 20 lines of this worker's part of the log
  std::string log_note;               // that the log was cut, in words; "": it is whole
};

// Blocks until the worker and everything it started are gone. `on_progress` (may be empty) is called on this thread at
// most every 50 ms. `interrupted` (may be null) counts the signals: 1 ends the worker with 0.5 s of grace, 2 at once.
// Throws LaunchError when the worker cannot be started, and whatever the callbacks throw; the worker is gone then, too.
WorkerOutcome supervise(const WorkerRequest& request, const std::function<void(const BoardView&)>& on_progress,
                        const std::atomic<int>* interrupted);

}  // namespace assay::host
