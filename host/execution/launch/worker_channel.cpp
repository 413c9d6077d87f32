#include "launch/worker_channel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "launch/launch_error.hpp"
#include "launch/process.hpp"

namespace assay::host::launch {
namespace {

constexpr const char* remedy =
    "a worker is started by the host, not by hand (use 'assay run --in-process' to debug a case)";

// What the host named the case text when it made the memory file.
bool has_spec(const std::string& process) {
  char target[64] = {};
  const std::string link = fmt::format("/proc/{}/fd/{}", process, worker_spec_fd);
  return readlink(link.c_str(), target, sizeof target - 1) > 0 &&
         std::string_view(target).starts_with(std::string("/memfd:") + spec_file_name);
}

pid_t parent_of(const std::string& process) {
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return static_cast<pid_t>(std::atol(line.c_str() + 5));
  return 0;
}

// A profiler that stands between the host and the worker may keep the descriptors to itself, and may have put its own
// at their numbers. Then they are opened anew from the nearest ancestor that holds them.
int open_of(const std::string& process, int fd, int flags) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, fd);
  const int opened = open(path.c_str(), flags | O_CLOEXEC);
  if (opened < 0)
    throw LaunchError::from_errno(fmt::format("cannot open {}, which the host left for its worker", path));
  return opened;
}

Fd take_events(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode))
    throw LaunchError(fmt::format("descriptor {} is not the event pipe; {}", fd, remedy));
  // A high number where the limit on descriptors allows it.
  int high = -1;
  for (const int from : {800, 200, 10})
    if (high = fcntl(fd, F_DUPFD_CLOEXEC, from); high >= 0) break;
  if (high < 0) throw LaunchError::from_errno("cannot move the event pipe");
  close(fd);
  return Fd(high);
}

std::string take_spec(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    throw LaunchError(fmt::format("descriptor {} is not the case text; {}", fd, remedy));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw LaunchError::from_errno(fmt::format("cannot read the case text of {} bytes", text.size()));
    done += static_cast<std::size_t>(n);
  }
  close(fd);
  return text;
}

ProgressBoard take_board(int fd) {
  ProgressBoard board = ProgressBoard::attach(fd);
  close(fd);
  return board;
}

}  // namespace

WorkerChannel::Descriptors WorkerChannel::find_descriptors() {
  const Descriptors as_spawned{worker_event_fd, worker_spec_fd, worker_board_fd};
  if (has_spec("self")) return as_spawned;
  for (pid_t pid = getppid(); pid > 1; pid = parent_of(std::to_string(pid)))
    if (const std::string process = std::to_string(pid); has_spec(process))
      return {open_of(process, worker_event_fd, O_WRONLY), open_of(process, worker_spec_fd, O_RDONLY),
              open_of(process, worker_board_fd, O_RDWR)};
  return as_spawned;  // what is wrong with them is said when they are taken
}

WorkerChannel::WorkerChannel() : WorkerChannel(find_descriptors()) {}

WorkerChannel::WorkerChannel(const Descriptors& fds)
    : board_(take_board(fds.board)), spec_(take_spec(fds.spec)), events_(take_events(fds.events)) {
  signal(SIGPIPE, SIG_IGN);
  setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

void WorkerChannel::send(std::string_view json_line) {
  if (json_line.find('\n') != std::string_view::npos)
    throw LaunchError("an event must be one line of JSON, found a newline in it; dump it without indentation");
  std::string line(json_line);
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t n = write(events_.get(), line.data() + done, line.size() - done);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EPIPE) {
      _exit(1);
    } else if (errno == EAGAIN) {  // a plugin made the shared file description non-blocking
      pollfd ready{events_.get(), POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      throw LaunchError::from_errno("cannot send an event to the host");
    }
  }
}

}  // namespace assay::host::launch
