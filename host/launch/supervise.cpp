#include "launch/supervise.hpp"

#include <array>

#include "launch/oom_kills.hpp"
#include "launch/watched_worker.hpp"

namespace assay::host {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds timeout_grace{2000};

void check_timeout(WatchedWorker& worker, milliseconds timeout, WatchClock::time_point now,
                   WatchClock::time_point started) {
  if (worker.end_reason() || timeout.count() == 0 || now - started < timeout) return;
  worker.end(WorkerStatus::timeout, worker.describe_timeout(timeout, now), now, timeout_grace);
}

}  // namespace

const char* name_of(WorkerStatus status) {
  switch (status) {
    case WorkerStatus::finished: return "finished";
    case WorkerStatus::timeout: return "timeout";
    case WorkerStatus::crashed: return "crashed";
    case WorkerStatus::oom: return "oom";
    case WorkerStatus::interrupted: return "interrupted";
    case WorkerStatus::ended: return "ended";
  }
  return "unknown";
}

WorkerOutcome supervise(const WorkerRequest& request, const std::function<void(const BoardView&)>& on_progress,
                        const std::atomic<int>* interrupted) {
  const WatchClock::time_point started = WatchClock::now();
  WatchedWorker worker(request, oom_kill_count());
  const std::array workers{&worker};
  InterruptWatch interrupts(interrupted, request.wake_fd);
  WatchClock::time_point reported_at = started;
  while (!worker.has_ended()) {
    const WatchClock::time_point now = WatchClock::now();
    if (const auto grace = interrupts.notice()) worker.interrupt(now, *grace);
    check_timeout(worker, request.timeout, now, started);
    if (!worker.enforce(now)) break;
    if (on_progress && now - reported_at >= watch_tick) {
      reported_at = now;
      on_progress(worker.read_board());
    }
    wait_for(workers, interrupts.wake_fd());
  }
  return worker.conclude(milliseconds(worker.end_reason() ? 1000 : 5000));
}

}  // namespace assay::host
