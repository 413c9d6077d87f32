#include "launch/worker_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "launch/launch_error.hpp"
#include "launch/reason.hpp"

namespace assay::host::launch {
namespace {

constexpr int pipe_bytes = 256 * 1024;            // what a worker can write while the thread naps
constexpr std::size_t buffer_bytes = pipe_bytes;  // of one read
constexpr std::size_t turn_bytes = 4 << 20;       // between two looks at whether to stop
constexpr std::chrono::milliseconds nap{5};
// A worker that wrote so much during a nap might have to wait in the next one: the naps become short until one of the
// former length would do again.
constexpr std::size_t much_bytes = 32 * 1024;
constexpr std::chrono::microseconds short_nap{50};
constexpr std::uint64_t kept_end_max = 1 << 20;

Fd open_log(const std::filesystem::path& file) {
  Fd fd(open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd)
    throw LaunchError::from_errno(
        fmt::format("cannot open the worker's log {} (is its folder there and writable?)", file.string()));
  return fd;
}

}  // namespace

WorkerLog::WorkerLog(const std::filesystem::path& file, std::uint64_t limit_bytes)
    : limit_bytes_(std::max(limit_bytes, least_log_limit_bytes)),
      file_(open_log(file)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      end_bytes_max_(static_cast<std::size_t>(std::min(limit_bytes_ / 2, kept_end_max))),
      beginning_bytes_left_(limit_bytes_ - end_bytes_max_) {
  struct stat status {};
  fstat(file_.get(), &status);
  begin_offset_ = static_cast<std::uint64_t>(status.st_size);
  // A host that was killed has left its last line open.
  char last = '\n';
  if (status.st_size > 0 && pread(file_.get(), &last, 1, status.st_size - 1) == 1 && last != '\n') {
    write_out("\n", 1);
    ++begin_offset_;
  }
  int ends[2];
  if (!stop_ || pipe2(ends, O_CLOEXEC) != 0)
    throw LaunchError::from_errno("cannot create the pipe of the worker's log");
  read_end_ = Fd(ends[0]), write_end_ = Fd(ends[1]);
  fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
  fcntl(read_end_.get(), F_SETPIPE_SZ, pipe_bytes);  // best effort: the worker waits a little more often
  // The host's signals are for its other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { carry(); });
  } catch (const std::system_error& e) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw LaunchError::from_errno("cannot start a thread for the worker's log", e.code().value());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WorkerLog::finish() noexcept {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(stop_.get(), &one, sizeof one);
  thread_.join();
  // A descendant that escaped and writes later gets SIGPIPE, as with any pipe that nobody reads any longer.
  for (Fd* fd : {&file_, &read_end_, &write_end_, &stop_}) fd->reset();
}

void WorkerLog::carry() {
  buffer_.resize(buffer_bytes);
  bool stopped = false;
  while (!is_closed_ && !stopped) {
    std::array<pollfd, 2> watched{{{read_end_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    poll(watched.data(), watched.size(), -1);
    stopped = watched[1].revents != 0;
    if (stopped) break;
    take(turn_bytes);
    for (bool much = false; !is_closed_ && !stopped;) {
      std::size_t taken = 0;
      const auto end = std::chrono::steady_clock::now() + nap;
      do {
        stopped = waits_for_stop(much ? short_nap : nap);
        taken += take(turn_bytes);
      } while (!is_closed_ && !stopped && std::chrono::steady_clock::now() < end);
      much = taken >= much_bytes;
      if (!much) break;
    }
  }
  // No more than is there now: a descendant that escaped could go on for ever.
  int there = 0;
  if (!is_closed_ && ioctl(read_end_.get(), FIONREAD, &there) == 0 && there > 0) take(static_cast<std::size_t>(there));
  complete();
}

bool WorkerLog::waits_for_stop(std::chrono::nanoseconds time) const {
  pollfd watched{stop_.get(), POLLIN, 0};
  const timespec patience{0, static_cast<long>(time.count())};
  return ppoll(&watched, 1, &patience, nullptr) > 0;
}

std::size_t WorkerLog::take(std::size_t bytes_max) {
  std::size_t taken = 0;
  while (taken < bytes_max) {
    const ssize_t n = read(read_end_.get(), buffer_.data(), std::min(buffer_.size(), bytes_max - taken));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    is_closed_ = n == 0;
    if (is_closed_) break;
    keep(buffer_.data(), static_cast<std::size_t>(n));
    taken += static_cast<std::size_t>(n);
  }
  return taken;
}

void WorkerLog::keep(const char* bytes, std::size_t count) {
  const auto first = static_cast<std::size_t>(std::min<std::uint64_t>(beginning_bytes_left_, count));
  if (first > 0) {
    write_out(bytes, first);
    beginning_bytes_left_ -= first;
    line_is_open_ = bytes[first - 1] != '\n';
  }
  if (first < count) keep_in_end(bytes + first, count - first);
}

void WorkerLog::keep_in_end(const char* bytes, std::size_t count) {
  end_.resize(end_bytes_max_);
  const bool was_whole = end_bytes_ <= end_.size();
  end_bytes_ += count;
  // Said at once, for whoever looks into the file meanwhile; complete() ends the line.
  if (was_whole && end_bytes_ > end_.size()) {
    const std::string text = fmt::format("{}[assay: the log is cut here, at its limit of {} ([run] log_limit)",
                                         line_is_open_ ? "\n" : "", bytes_text(limit_bytes_));
    write_out(text.data(), text.size());
  }
  if (count > end_.size()) bytes += count - end_.size(), count = end_.size();
  const std::size_t up_to_the_rim = std::min(count, end_.size() - end_place_);
  std::memcpy(end_.data() + end_place_, bytes, up_to_the_rim);
  std::memcpy(end_.data(), bytes + up_to_the_rim, count - up_to_the_rim);
  end_place_ = (end_place_ + count) % end_.size();
}

void WorkerLog::complete() {
  if (end_bytes_ <= end_.size()) return write_out(end_.data(), static_cast<std::size_t>(end_bytes_));
  std::rotate(end_.begin(), end_.begin() + static_cast<std::ptrdiff_t>(end_place_), end_.end());
  // A line that is not there from its beginning is dropped as well, unless that would be much.
  const auto newline = std::find(end_.begin(), end_.begin() + static_cast<std::ptrdiff_t>(end_.size() / 2), '\n');
  const bool in_sight = newline != end_.begin() + static_cast<std::ptrdiff_t>(end_.size() / 2);
  const auto kept_from = in_sight ? newline + 1 : end_.begin();
  const auto kept = static_cast<std::size_t>(end_.end() - kept_from);
  dropped_bytes_ = end_bytes_ - kept;
  const std::string text = fmt::format("; {} bytes were dropped, and its end follows]\n", dropped_bytes_);
  write_out(text.data(), text.size());
  write_out(end_.data() + (end_.size() - kept), kept);
}

// A disk that is full loses text, and nothing else.
void WorkerLog::write_out(const char* bytes, std::size_t count) {
  while (count > 0) {
    const ssize_t n = write(file_.get(), bytes, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes += n, count -= static_cast<std::size_t>(n);
  }
}

}  // namespace assay::host::launch
