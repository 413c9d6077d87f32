#include "launch/supervise.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>

#include "launch/log_tail.hpp"
#include "launch/oom_kills.hpp"
#include "launch/process.hpp"
#include "launch/reason.hpp"

namespace assay::host {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds tick{50};
constexpr milliseconds memory_tick{20};  // how long a worker can be above its limit unnoticed
constexpr milliseconds timeout_grace{2000};
constexpr milliseconds interrupt_grace{500};
constexpr milliseconds death_patience{30'000};  // after SIGKILL; a driver call that never returns can defeat it
constexpr std::size_t log_lines = 20;

enum class Cause { none, timeout, memory_limit, interrupted, too_many_events };

class Supervisor {
 public:
  Supervisor(const WorkerRequest& request, const std::function<void(const BoardView&)>& on_progress,
             const std::atomic<int>* interrupted)
      : request_(request),
        on_progress_(on_progress),
        interrupted_(interrupted),
        board_(ProgressBoard::create()),
        oom_kills_before_(oom_kill_count()),
        process_(spawn(
            {request.executable, request.arguments, request.environment, request.log_file, request.spec, board_.fd()})),
        reader_(request.on_event),
        wake_fd_(request.wake_fd) {}

  WorkerOutcome run() {
    while (!process_.has_ended()) {
      const Clock::time_point now = Clock::now();
      notice_interrupt(now);
      check_timeout(now);
      check_memory(now);
      if (kill_at_ && now >= *kill_at_) {
        process_.signal_group(SIGKILL);
        if (now >= *kill_at_ + death_patience) break;
      }
      report_progress(now);
      wait();
    }
    return conclude();
  }

 private:
  void end_worker(Cause cause, Clock::time_point now, milliseconds grace) {
    if (cause_ == Cause::none) {
      cause_ = cause;
      ended_in_ = board_.read();
      silent_for_ = now - last_beat_at_;
    }
    if (grace.count() > 0) process_.signal_group(SIGTERM);
    kill_at_ = std::min(kill_at_.value_or(Clock::time_point::max()), now + grace);
  }

  void notice_interrupt(Clock::time_point now) {
    const int signals = interrupted_ ? interrupted_->load() : 0;
    if (signals == signals_seen_) return;
    signals_seen_ = signals;
    wake_fd_ = -1;  // stays readable: polling it again would spin
    end_worker(Cause::interrupted, now, signals >= 2 ? milliseconds(0) : interrupt_grace);
  }

  void check_timeout(Clock::time_point now) {
    if (cause_ == Cause::none && request_.timeout.count() > 0 && now - started_ >= request_.timeout)
      end_worker(Cause::timeout, now, timeout_grace);
  }

  void check_memory(Clock::time_point now) {
    if (cause_ != Cause::none || !request_.memory_limit_bytes) return;
    const std::uint64_t rss_bytes = process_.rss_bytes();
    if (rss_bytes <= *request_.memory_limit_bytes) return;
    rss_at_end_bytes_ = rss_bytes;
    end_worker(Cause::memory_limit, now, milliseconds(0));
  }

  void report_progress(Clock::time_point now) {
    if (now - reported_at_ < tick) return;
    reported_at_ = now;
    const BoardView view = board_.read();
    if (view.heartbeat != last_heartbeat_) {
      last_heartbeat_ = view.heartbeat;
      last_beat_at_ = now;
    }
    if (on_progress_) on_progress_(view);
  }

  void wait() {
    std::array<pollfd, 3> watched{{{process_.pid_fd(), POLLIN, 0}, {event_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}}};
    const bool short_tick = request_.memory_limit_bytes || kill_at_ || process_.pid_fd() < 0;
    poll(watched.data(), watched.size(), static_cast<int>((short_tick ? memory_tick : tick).count()));
    if (event_fd_ >= 0 && watched[1].revents != 0) take_events();
    // The signal's count may not be visible yet; the next round sees it.
    if (watched[2].revents != 0 && !interrupted_) wake_fd_ = -1;
  }

  void take_events() {
    const EventReader::State state = reader_.read_from(event_fd_);
    if (state != EventReader::State::open) event_fd_ = -1;
    if (state == EventReader::State::overflow) end_worker(Cause::too_many_events, Clock::now(), milliseconds(0));
  }

  WorkerOutcome conclude() {
    // Before the pipe is emptied: a descendant could go on writing to it.
    const std::optional<Exit> exit = process_.kill_and_reap(milliseconds(kill_at_ ? 1000 : 5000));
    while (event_fd_ >= 0) {
      const std::size_t before = reader_.total_bytes();
      take_events();
      if (event_fd_ >= 0 && reader_.total_bytes() == before) break;
    }
    WorkerOutcome outcome;
    outcome.where = cause_ == Cause::none ? board_.read() : ended_in_;
    outcome.phase = phase_name(outcome.where, request_.phase_names);
    outcome.events = std::move(reader_).finish();
    outcome.log_tail = last_lines(request_.log_file, log_lines, process_.log_begin_offset());
    outcome.peak_rss_bytes = std::max(rss_at_end_bytes_, exit ? exit->peak_rss_bytes : 0);
    outcome.wall_s = std::chrono::duration<double>(Clock::now() - started_).count();
    classify(outcome, exit);
    return outcome;
  }

  void classify(WorkerOutcome& outcome, const std::optional<Exit>& exit) const {
    const bool has_result = outcome.events.result.has_value();
    const std::string position = describe_position(outcome.where, request_.phase_names);
    const std::string log = fmt::format("; log: {}", request_.log_file.string());
    const auto say = [&](WorkerStatus status, std::string reason) {
      outcome.status = status;
      outcome.reason = std::move(reason);
      if (!exit)
        outcome.reason += "; its process does not end even when killed (a call into the kernel or a driver hangs)";
    };
    // A result that was complete before the worker could be stopped is a result.
    if (exit && !exit->by_signal && exit->number == 0 && has_result && cause_ != Cause::too_many_events)
      return say(WorkerStatus::finished, "");
    switch (cause_) {
      case Cause::timeout:
        return say(WorkerStatus::timeout,
                   fmt::format("{} {} ([measure] timeout): in {}; last sign of life {} before{}",
                               has_result ? "it reported a result but did not end within" : "no result after",
                               duration_text(request_.timeout), position,
                               duration_text(std::chrono::duration_cast<milliseconds>(silent_for_)), log));
      case Cause::memory_limit:
        return say(
            WorkerStatus::oom,
            fmt::format("resident memory {} is above [run] memory_limit {} in {}; {}{}", bytes_text(rss_at_end_bytes_),
                        bytes_text(*request_.memory_limit_bytes), position, describe_holdings(outcome.where), log));
      case Cause::interrupted:
        return say(WorkerStatus::interrupted, fmt::format("the run was interrupted in {}", position));
      case Cause::too_many_events:
        return say(WorkerStatus::crashed, fmt::format("stopped: it sent more than {} of events, in {}{}",
                                                      bytes_text(EventReader::total_bytes_max), position, log));
      case Cause::none: break;
    }
    if (!exit) return say(WorkerStatus::crashed, fmt::format("its end could not be observed, in {}{}", position, log));
    if (exit->by_signal && exit->number == SIGKILL && oom_kill_count() > oom_kills_before_)
      return say(WorkerStatus::oom, fmt::format("killed by the kernel because memory ran out, in {}; {}{}", position,
                                                describe_holdings(outcome.where), log));
    if (exit->by_signal)
      return say(WorkerStatus::crashed,
                 fmt::format("killed by {} in {}{}", describe_signal(exit->number), position, log));
    return say(WorkerStatus::crashed, fmt::format("exited with code {} {} it reported a result, in {}{}", exit->number,
                                                  has_result ? "after" : "before", position, log));
  }

  static std::string describe_holdings(const BoardView& where) {
    std::string text = "held by kind: " + describe_memory(where.current_bytes);
    if (!where.last_allocation.empty()) text += "; asked for last: " + where.last_allocation;
    return text;
  }

  const WorkerRequest& request_;
  const std::function<void(const BoardView&)>& on_progress_;
  const std::atomic<int>* interrupted_;
  const Clock::time_point started_ = Clock::now();
  ProgressBoard board_;
  std::uint64_t oom_kills_before_;
  Process process_;
  EventReader reader_;
  int event_fd_ = process_.event_fd();
  int wake_fd_;
  int signals_seen_ = 0;
  Cause cause_ = Cause::none;
  BoardView ended_in_;
  std::optional<Clock::time_point> kill_at_;
  std::uint64_t rss_at_end_bytes_ = 0;
  std::uint64_t last_heartbeat_ = 0;
  Clock::time_point last_beat_at_ = started_;
  Clock::time_point reported_at_ = started_;
  Clock::duration silent_for_{};
};

}  // namespace

const char* name_of(WorkerStatus status) {
  switch (status) {
    case WorkerStatus::finished: return "finished";
    case WorkerStatus::timeout: return "timeout";
    case WorkerStatus::crashed: return "crashed";
    case WorkerStatus::oom: return "oom";
    case WorkerStatus::interrupted: return "interrupted";
  }
  return "unknown";
}

WorkerOutcome supervise(const WorkerRequest& request, const std::function<void(const BoardView&)>& on_progress,
                        const std::atomic<int>* interrupted) {
  return Supervisor(request, on_progress, interrupted).run();
}

}  // namespace assay::host
