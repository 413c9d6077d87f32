// One worker under watch, as supervise_group() has one for each rank. It owns the process, its board and its events,
// and is stepped by a loop that polls for all workers at once.
#pragma once
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/board.hpp"
#include "launch/child_memory.hpp"
#include "launch/event_reader.hpp"
#include "launch/worker_request.hpp"

namespace assay::host::launch {

using WatchClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds watch_tick{50};
constexpr std::chrono::milliseconds interrupt_grace{500};

// How the note on a process begins that did not end as it should once its result was there.
inline constexpr const char* after_result_note = "after it had reported its result, which is kept, the process ";

class WatchedWorker {
 public:
  // Starts it. `request` must outlive this object. `oom_kills_before`: oom_kill_count() before the start. Throws
  // LaunchError.
  WatchedWorker(const WorkerRequest& request, std::uint64_t oom_kills_before);

  bool has_ended() const { return seen_to_end_; }  // as the last wait_for() saw it
  bool is_exiting() const { return process_.is_exiting(); }
  BoardView read_board() const { return board_.read(); }
  // The time of the board's last sign of life; the start when there was none.
  WatchClock::time_point last_sign_of_life(const BoardView& view) const;
  const std::optional<std::string>& result() const { return reader_.result(); }  // so far
  // It has given its result, and takes its case down: that has a separate limit.
  bool is_in_teardown() const { return result() && board_.read().stage >= Stage::destroy; }

  // Asked to end, or killed for its memory or its events: why, in words. Nothing while it runs on its own.
  const std::string* end_reason() const { return ending_ ? &ending_->reason : nullptr; }
  // SIGTERM, and SIGKILL after `grace`; SIGKILL at once when that is 0. The first call says what became of the worker;
  // a later one can only shorten the grace.
  void end(WorkerStatus status, std::string reason, WatchClock::time_point now, std::chrono::milliseconds grace);
  void kill() const noexcept { process_.signal_group(SIGKILL); }  // silent; for an unwinding loop
  // end(), with the words for an interrupted run.
  void interrupt(WatchClock::time_point now, std::chrono::milliseconds grace);
  // "stage measure, phase backward, step 4"
  std::string position() const;
  // "in stage measure, phase backward, step 4; last sign of life 2.0 s before; log: x.log"
  std::string describe_silence(WatchClock::time_point now) const;
  // The words for a worker that did not end within `timeout`.
  std::string describe_timeout(std::chrono::milliseconds timeout, WatchClock::time_point now) const;
  std::string log_suffix() const;  // "; log: x.log"

  // Looks at its memory. Kills a worker that is above its limit, that takes too long to end after its result, or that
  // did not end within its grace. False when the worker does not die: no use in waiting for it any longer.
  bool enforce(WatchClock::time_point now);

  // Kills what is left and says what became of it. `patience`: for what does not die at once. At most once, last.
  WorkerOutcome conclude(std::chrono::milliseconds patience);

  // How long a loop may wait before it steps this worker again.
  std::chrono::milliseconds tick() const;
  friend void wait_for(std::span<WatchedWorker* const> workers, int wake_fd);

 private:
  struct Ending {
    WorkerStatus status;
    std::string reason;
    BoardView where;
    WatchClock::time_point kill_at;
    bool after_result;
  };

  void check_memory(WatchClock::time_point now);
  std::string describe_least_limit(Stage stage) const;
  void check_teardown(WatchClock::time_point now);
  void take_events();
  void classify(WorkerOutcome& outcome, const std::optional<Exit>& exit) const;
  std::string describe_end(const std::optional<Exit>& exit) const;

  const WorkerRequest& request_;
  const WatchClock::time_point started_ = WatchClock::now();
  std::uint64_t oom_kills_before_;
  ProgressBoard board_;
  Process process_;
  ChildMemory children_;
  EventReader reader_;
  int event_fd_ = process_.event_fd();
  bool seen_to_end_ = false;
  bool overflowed_ = false;
  std::optional<Ending> ending_;
  std::optional<WatchClock::time_point> teardown_at_;  // when it was seen first
  std::uint64_t rss_at_end_bytes_ = 0;
  std::uint64_t peak_with_children_bytes_ = 0;
  // Resident before its setup, and from there to the verification, as far as that was seen.
  std::uint64_t own_bytes_ = 0, steps_bytes_ = 0;
  WatchClock::time_point memory_checked_at_ = started_;
};

// Sleeps until one of the workers ends or sends something (which is taken), `wake_fd` (-1: none) becomes readable, or
// the shortest tick has passed.
void wait_for(std::span<WatchedWorker* const> workers, int wake_fd);

// The host's signals, as a loop sees them.
class InterruptWatch {
 public:
  // `count` may be null: then nothing ever comes.
  InterruptWatch(const std::atomic<int>* count, int wake_fd) : count_(count), wake_fd_(count ? wake_fd : -1) {}
  // The grace that is left to the workers; nothing when no further signal has come.
  std::optional<std::chrono::milliseconds> notice();
  // The caller polls this descriptor. It is -1 once a signal was noticed, since it stays readable.
  int wake_fd() const { return wake_fd_; }

 private:
  const std::atomic<int>* count_;
  int wake_fd_;
  int seen_ = 0;
};

}  // namespace assay::host::launch
