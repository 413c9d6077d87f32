#include "launch/watched_worker.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
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

constexpr std::uint64_t room_of_libraries_bytes = std::uint64_t{512} << 20;  // above a limit, while they are opened
constexpr milliseconds memory_tick{20};  // how long a worker can be above its limit unnoticed
// How long a process that it has started can be; where no limit makes haste, it is for the record alone.
constexpr milliseconds children_tick{100}, children_tick_without_limit{250};
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

std::string describe_left(const Exit& exit) {
  std::vector<std::string> names;
  for (const std::string& name : exit.left_names) names.push_back(printable_utf8(name));
  return fmt::format("the workload left {} running, which {} ended with the case: {}{}",
                     exit.left_running == 1 ? "a process" : fmt::format("{} processes", exit.left_running),
                     exit.left_running == 1 ? "was" : "were", fmt::join(names, ", "),
                     exit.left_running > names.size() ? ", ..." : "");
}

}  // namespace

WatchedWorker::WatchedWorker(const WorkerRequest& request, std::uint64_t oom_kills_before)
    : request_(request),
      oom_kills_before_(oom_kills_before),
      board_(ProgressBoard::create()),
      process_(spawn(with_board(request, board_.fd()))),
      children_(process_.pid(), process_.keeper_pid(), process_.tag_entry(),
                request.memory_limit_bytes ? children_tick : children_tick_without_limit),
      reader_(request.on_event) {}

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
  return fmt::format("{} {} ([measure] timeout): {}", result() ? "did not end within" : "no result after",
                     duration_text(timeout), describe_silence(now));
}

void WatchedWorker::end(WorkerStatus status, std::string reason, WatchClock::time_point now, milliseconds grace) {
  if (!ending_)
    ending_ = Ending{status, std::move(reason), board_.read(), WatchClock::time_point::max(), result().has_value()};
  if (grace.count() > 0) process_.signal_group(SIGTERM);
  ending_->kill_at = std::min(ending_->kill_at, now + grace);
}

void WatchedWorker::interrupt(WatchClock::time_point now, milliseconds grace) {
  end(WorkerStatus::interrupted, fmt::format("the run was interrupted in {}", position()), now, grace);
}

bool WatchedWorker::enforce(WatchClock::time_point now) {
  check_memory(now);
  check_teardown(now);
  if (ending_ || teardown_at_) process_.continue_keeper();
  if (!ending_ || now < ending_->kill_at) return true;
  process_.signal_group(SIGKILL);
  return now < ending_->kill_at + death_patience;
}

void WatchedWorker::check_memory(WatchClock::time_point now) {
  const milliseconds tick = request_.memory_limit_bytes ? memory_tick : watch_tick;
  if (ending_ || now - memory_checked_at_ < tick) return;
  memory_checked_at_ = now;
  const std::uint64_t of_children = children_.resident_bytes(now);
  if (of_children == 0 && !request_.memory_limit_bytes) return;
  const BoardView view = board_.read();
  std::uint64_t bytes = process_.rss_bytes() + of_children;
  // A verification may take more than what is verified.
  if (of_children > 0 && view.stage < Stage::verify)
    peak_with_children_bytes_ = std::max(peak_with_children_bytes_, bytes);
  if (!request_.memory_limit_bytes) return;
  if (view.stage < Stage::setup)
    own_bytes_ = std::max(own_bytes_, bytes);
  else if (view.stage < Stage::verify)
    steps_bytes_ = std::max(steps_bytes_, bytes);
  // Libraries are opened in `load`. A limit below what they take is reported when all of it is known.
  if (view.stage == Stage::load && bytes <= *request_.memory_limit_bytes + room_of_libraries_bytes) return;
  if (bytes <= *request_.memory_limit_bytes) return;
  if (of_children > 0) {
    if (const std::uint64_t exact = children_.bytes_with_worker(now)) bytes = exact;
    if (bytes <= *request_.memory_limit_bytes) return;
  }
  rss_at_end_bytes_ = bytes;
  end(WorkerStatus::oom,
      fmt::format("resident memory {}{} is above [run] memory_limit {} in {}; {}{}{}", bytes_text(bytes),
                  of_children > 0 ? fmt::format(", {} of it of processes that it has started,",
                                                bytes_text(std::min(of_children, bytes)))
                                  : "",
                  bytes_text(*request_.memory_limit_bytes), describe_position(view, request_.phase_names),
                  describe_holdings(view), describe_least_limit(view.stage), log_suffix()),
      now, milliseconds(0));
}

// What a user has to know who wonders how small a limit may be.
std::string WatchedWorker::describe_least_limit(Stage stage) const {
  if (stage == Stage::verify && steps_bytes_ > 0)
    return fmt::format(
        "; the case itself held {} at most; its verification needs a limit above the {} held when it was ended, "
        "perhaps more",
        bytes_text(steps_bytes_), bytes_text(rss_at_end_bytes_));
  if (own_bytes_ > *request_.memory_limit_bytes / 2)
    return fmt::format(
        "; the process held about {} of it before the case took any, so every case needs a larger "
        "limit",
        bytes_text(own_bytes_));
  return "";
}

void WatchedWorker::check_teardown(WatchClock::time_point now) {
  if (!teardown_at_ && is_in_teardown()) teardown_at_ = now;
  if (ending_ || !teardown_at_ || now - *teardown_at_ < request_.teardown_timeout) return;
  end(WorkerStatus::timeout,
      fmt::format("did not end within {} ([run] teardown_timeout) and was killed",
                  duration_text(request_.teardown_timeout)),
      now, milliseconds(0));
}

milliseconds WatchedWorker::tick() const { return request_.memory_limit_bytes || ending_ ? memory_tick : watch_tick; }

void wait_for(std::span<WatchedWorker* const> workers, int wake_fd) {
  std::vector<pollfd> watched;
  watched.reserve(2 * workers.size() + 1);
  milliseconds patience = watch_tick;
  for (const WatchedWorker* worker : workers) {
    watched.push_back({worker->process_.end_fd(), POLLIN, 0});
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
  // The worker ends before the pipe is emptied, since a descendant could go on writing to it.
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
  if (exit && exit->left_running > 0 && !request_.is_wrapped) outcome.left_note = describe_left(*exit);
  outcome.peak_rss_bytes =
      std::max({rss_at_end_bytes_, peak_with_children_bytes_, exit ? exit->peak_rss_bytes : std::uint64_t{0}});
  outcome.peak_with_children_bytes = peak_with_children_bytes_;
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
  // A result is a result, however the worker ended after it.
  const bool ended_well = exit && !exit->by_signal && exit->number == 0;
  const bool was_stopped_before_it =
      ending_ && (!ending_->after_result || ending_->status == WorkerStatus::ended || overflowed_);
  if (has_result && (!was_stopped_before_it || (ended_well && !overflowed_))) {
    outcome.status = WorkerStatus::finished;
    outcome.end_note = describe_end(exit);
    return;
  }
  if (ending_) return say(ending_->status, ending_->reason);
  if (!exit) return say(WorkerStatus::crashed, fmt::format("its end could not be observed, in {}{}", position, log));
  if (exit->by_signal && exit->number == SIGKILL && oom_kill_count() > oom_kills_before_)
    return say(WorkerStatus::oom, fmt::format("killed by the kernel because memory ran out, in {}; {}{}", position,
                                              describe_holdings(outcome.where), log));
  if (exit->by_signal)
    return say(WorkerStatus::crashed,
               fmt::format("killed by {} in {}{}", describe_signal(exit->number), position, log));
  return say(WorkerStatus::crashed,
             fmt::format("exited with code {} before it reported a result, in {}{}", exit->number, position, log));
}

// "" of one that ended as it should.
std::string WatchedWorker::describe_end(const std::optional<Exit>& exit) const {
  // Where it ended. Of a worker that was asked to end, WorkerOutcome::where is where it was then: one that went on
  // through the rest of its life has ended as it should.
  const BoardView last = board_.read();
  const Stage stage = last.stage;
  const bool in_teardown = stage == Stage::destroy || stage == Stage::deinit;
  std::string how;
  if (!exit)
    how = "does not end even when killed (a call into the kernel or a driver hangs)";
  else if (!exit->by_signal && exit->number == 0)
    how = in_teardown ? "exited with code 0" : "";
  else if (ending_)
    how = ending_->status == WorkerStatus::timeout ? ending_->reason : "was stopped: " + ending_->reason;
  else if (!exit->by_signal)
    how = fmt::format("exited with code {}", exit->number);
  else if (exit->number == SIGKILL && oom_kill_count() > oom_kills_before_)
    how = "was killed by the kernel because memory ran out";
  else
    how = "was killed by " + describe_signal(exit->number);
  if (how.empty()) return "";
  const std::string place = stage == Stage::done ? "at its exit, after destroy and deinit"
                                                 : "in " + describe_position(last, request_.phase_names);
  return fmt::format("{}{}, {}{}", after_result_note, how, place, log_suffix());
}

std::optional<milliseconds> InterruptWatch::notice() {
  const int signals = count_ ? count_->load() : 0;
  if (signals == seen_) return std::nullopt;
  seen_ = signals;
  wake_fd_ = -1;
  return signals >= 2 ? milliseconds(0) : interrupt_grace;
}

}  // namespace assay::host::launch
