#include "launch/launcher_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "launch/launch_error.hpp"

namespace assay::host::launch {
namespace {

// "123 (bash) S 122 ...": the name may hold anything, brackets too.
pid_t parent_if_shell(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  std::getline(file, stat);
  const std::size_t open = stat.find('('), close = stat.rfind(')');
  if (open == stat.npos || close == stat.npos || close + 4 >= stat.size()) return 0;
  const std::string name = stat.substr(open + 1, close - open - 1);
  constexpr const char* shells[] = {"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh"};
  if (std::find(std::begin(shells), std::end(shells), name) == std::end(shells)) return 0;
  return static_cast<pid_t>(std::strtol(stat.c_str() + close + 4, nullptr, 10));
}

}  // namespace

std::vector<pid_t> launcher_processes() {
  std::vector<pid_t> processes;
  for (pid_t process = getppid(); process > 1; process = parent_if_shell(process)) processes.push_back(process);
  return processes;
}

LauncherWatch::LauncherWatch(const std::vector<pid_t>& processes, std::function<void(pid_t)> end) {
  std::vector<pid_t> known;
  for (const pid_t process : processes)
    if (const long fd = syscall(SYS_pidfd_open, process, 0); fd >= 0) {
      watched_.emplace_back(static_cast<int>(fd));
      known.push_back(process);
    }
  if (watched_.empty()) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw LaunchError::from_errno("cannot create a pipe");
  leave_ = Fd(ends[0]), write_end_ = Fd(ends[1]);
  std::vector<pollfd> polled{{leave_.get(), POLLIN, 0}};
  for (const Fd& fd : watched_) polled.push_back({fd.get(), POLLIN, 0});
  // Signals are for the threads that were there before.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([polled, known, end = std::move(end)]() mutable {
    while (poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
    }
    if (polled[0].revents != 0) return;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (polled[i + 1].revents != 0) return end(known[i]);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LauncherWatch::~LauncherWatch() {
  write_end_.reset();  // its reader sees the end
  if (thread_.joinable()) thread_.join();
}

void end_with_launcher(pid_t launcher) {
  // Its standard error may have gone with the launcher.
  const std::string text =
      fmt::format("assay: process {}, which has started this rank, is gone: the rank ends\n", launcher);
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) {
  }
  kill(getpid(), SIGTERM);
}

}  // namespace assay::host::launch
