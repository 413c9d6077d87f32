#include "launch/watched_worker.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "launch/log_tail.hpp"
#include "launch/oom_kills.hpp"
#include "launch/reason.hpp"

namespace assay::host::launch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds memory_tick{20};         // how long a worker can be above its limit unnoticed
constexpr milliseconds death_patience{30'000};  // after SIGKILL; a driver call that never returns can defeat it
constexpr std::size_t log_lines = 20;

SpawnRequest with_board(SpawnRequest request, int board_fd) {
  request.board_fd = board_fd;
  return request;
}

std::string describe_holdings(const BoardView& where) {
  std::string text = "held by kind: " + describe_memory(where.current_bytes);
  if (!where.last_allocation.empty()) text += "; asked for last: " + where.last_allocation;
  return text;
}

}  // namespace

WatchedWorker::WatchedWorker(const WorkerRequest& request, std::uint64_t oom_kills_before)
    : request_(request),
      oom_kills_before_(oom_kills_before),
      board_(ProgressBoard::create()),
      process_(spawn(with_board(request, board_.fd()))),
      reader_(request.on_event) {}

bool WatchedWorker::has_ended() const {
  // With a descriptor, poll() has told; without one the kernel must be asked each time.
  return seen_to_end_ || (process_.pid_fd() < 0 && process_.has_ended());
}

WatchClock::time_point WatchedWorker::last_sign_of_life(const BoardView& view) const {
  const WatchClock::time_point at{std::chrono::nanoseconds(view.last_beat_ns)};
  // The board is the worker's to write: what lies outside of its life is not believed.
  return std::clamp(at, started_, std::max(started_, WatchClock::now()));
}

std::string WatchedWorker::position() const { return describe_position(board_.read(), request_.phase_names); }

std::string WatchedWorker::log_suffix() const { return fmt::format("; log: {}", request_.log_file.string()); }

std::string WatchedWorker::describe_silence(WatchClock::time_point now) const {
  const BoardView view = board_.read();
  const auto silent_for = std::chrono::duration_cast<milliseconds>(now - last_sign_of_life(view));
  return fmt::format("in {}; last sign of life {} before{}", describe_position(view, request_.phase_names),
                     duration_text(std::max(silent_for, milliseconds(0))), log_suffix());
}

std::string WatchedWorker::describe_timeout(milliseconds timeout, WatchClock::time_point now) const {
  return fmt::format("{} {} ([measure] timeout): {}",
                     result() ? "it reported a result but did not end within" : "no result after",
                     duration_text(timeout), describe_silence(now));
}

void WatchedWorker::end(WorkerStatus status, std::string reason, WatchClock::time_point now, milliseconds grace) {
  if (!ending_) ending_ = Ending{status, std::move(reason), board_.read(), WatchClock::time_point::max()};
  if (grace.count() > 0) process_.signal_group(SIGTERM);
  ending_->kill_at = std::min(ending_->kill_at, now + grace);
}

void WatchedWorker::interrupt(WatchClock::time_point now, milliseconds grace) {
  end(WorkerStatus::interrupted, fmt::format("the run was interrupted in {}", position()), now, grace);
}

bool WatchedWorker::enforce(WatchClock::time_point now) {
  check_memory(now);
  if (!ending_ || now < ending_->kill_at) return true;
  process_.signal_group(SIGKILL);
  return now < ending_->kill_at + death_patience;
}

void WatchedWorker::check_memory(WatchClock::time_point now) {
  if (ending_ || !request_.memory_limit_bytes || now - memory_checked_at_ < memory_tick) return;
  memory_checked_at_ = now;
  const std::uint64_t rss_bytes = process_.rss_bytes();
  if (rss_bytes <= *request_.memory_limit_bytes) return;
  rss_at_end_bytes_ = rss_bytes;
  const BoardView view = board_.read();
  end(WorkerStatus::oom,
      fmt::format("resident memory {} is above [run] memory_limit {} in {}; {}{}", bytes_text(rss_bytes),
                  bytes_text(*request_.memory_limit_bytes), describe_position(view, request_.phase_names),
                  describe_holdings(view), log_suffix()),
      now, milliseconds(0));
}

milliseconds WatchedWorker::tick() const {
  return request_.memory_limit_bytes || ending_ || process_.pid_fd() < 0 ? memory_tick : watch_tick;
}

void wait_for(std::span<WatchedWorker* const> workers, int wake_fd) {
  std::vector<pollfd> watched;
  watched.reserve(2 * workers.size() + 1);
  milliseconds patience = watch_tick;
  for (const WatchedWorker* worker : workers) {
    watched.push_back({worker->process_.pid_fd(), POLLIN, 0});
    watched.push_back({worker->event_fd_, POLLIN, 0});
    patience = std::min(patience, worker->tick());
  }
  watched.push_back({wake_fd, POLLIN, 0});
  poll(watched.data(), watched.size(), static_cast<int>(patience.count()));
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (watched[2 * i + 1].revents != 0) workers[i]->take_events();
    if (watched[2 * i].revents != 0) workers[i]->seen_to_end_ = true;
  }
}

void WatchedWorker::take_events() {
  const EventReader::State state = reader_.read_from(event_fd_);
  if (state != EventReader::State::open) event_fd_ = -1;
  if (state != EventReader::State::overflow) return;
  overflowed_ = true;
  end(WorkerStatus::crashed,
      fmt::format("stopped: it sent more than {} of events, in {}{}", bytes_text(EventReader::total_bytes_max),
                  position(), log_suffix()),
      WatchClock::now(), milliseconds(0));
}

WorkerOutcome WatchedWorker::conclude(milliseconds patience) {
  // Before the pipe is emptied: a descendant could go on writing to it.
  const std::optional<Exit> exit = process_.kill_and_reap(patience);
  while (event_fd_ >= 0) {
    const std::size_t before = reader_.total_bytes();
    take_events();
    if (event_fd_ >= 0 && reader_.total_bytes() == before) break;
  }
  WorkerOutcome outcome;
  outcome.where = ending_ ? ending_->where : board_.read();
  outcome.phase = phase_name(outcome.where, request_.phase_names);
  outcome.signal = exit && exit->by_signal ? exit->number : 0;
  outcome.events = std::move(reader_).finish();
  outcome.log_tail = last_lines(request_.log_file, log_lines, process_.log_begin_offset());
  if (const std::uint64_t dropped = process_.log_dropped_bytes(); dropped > 0)
    outcome.log_note = fmt::format(
        "the log was cut: {} bytes between its beginning and its end were dropped, because "
        "it passed [run] log_limit ({})",
        dropped, bytes_text(request_.log_limit_bytes));
  outcome.peak_rss_bytes = std::max(rss_at_end_bytes_, exit ? exit->peak_rss_bytes : 0);
  outcome.wall_s = std::chrono::duration<double>(WatchClock::now() - started_).count();
  classify(outcome, exit);
  return outcome;
}

void WatchedWorker::classify(WorkerOutcome& outcome, const std::optional<Exit>& exit) const {
  const bool has_result = outcome.events.result.has_value();
  const std::string position = describe_position(outcome.where, request_.phase_names);
  const std::string log = log_suffix();
  const auto say = [&](WorkerStatus status, std::string reason) {
    outcome.status = status;
    outcome.reason = std::move(reason);
    if (!exit)
      outcome.reason += "; its process does not end even when killed (a call into the kernel or a driver hangs)";
  };
  // A result that was complete before the worker could be stopped is a result.
  if (exit && !exit->by_signal && exit->number == 0 && has_result && !overflowed_)
    return say(WorkerStatus::finished, "");
  if (ending_) return say(ending_->status, ending_->reason);
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

std::optional<milliseconds> InterruptWatch::notice() {
  const int signals = count_ ? count_->load() : 0;
  if (signals == seen_) return std::nullopt;
  seen_ = signals;
  wake_fd_ = -1;
  return signals >= 2 ? milliseconds(0) : interrupt_grace;
}

}  // namespace assay::host::launch
