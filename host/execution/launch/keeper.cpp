#include "launch/keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "launch/child_processes.hpp"
#include "launch/close_from.hpp"

namespace assay::host::launch {
namespace {

constexpr int keeper_channel_fd = 3;

void rest(long milliseconds) {
  const timespec time{0, milliseconds * 1'000'000};
  nanosleep(&time, nullptr);
}

// The worker stays unreaped until all is reported, so that its number and its group belong to nobody else.
class Keeper {
 public:
  explicit Keeper(pid_t worker) : worker_(worker) {}

  [[noreturn]] void watch() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);  // held back, as every signal
    const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    KeeperMessage started;
    started.worker = worker_;
    tell(started);
    bool told_end = false;
    for (;;) {
      reap_adopted();
      if (!told_end && has_ended()) {
        KeeperMessage ended;
        ended.word = KeeperWord::ended;
        tell(ended);
        told_end = true;
      }
      pollfd watched[2] = {{keeper_channel_fd, POLLIN, 0}, {signals, POLLIN, 0}};
      // Without a descriptor of signals (there was none left) it looks from time to time.
      poll(watched, 2, signals >= 0 ? -1 : 50);
      if (watched[1].revents != 0) drain(signals);
      if (watched[0].revents == 0) continue;
      KeeperMessage message;
      const ssize_t n = recv(keeper_channel_fd, &message, sizeof message, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      // Anything else than a request says that the host is gone, as does the end of the channel.
      end_all();
      _exit(0);
    }
  }

 private:
  static void tell(const KeeperMessage& message) { send(keeper_channel_fd, &message, sizeof message, MSG_NOSIGNAL); }

  static void drain(int signals) {
    signalfd_siginfo info;
    while (read(signals, &info, sizeof info) > 0) {
    }
  }

  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(worker_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == worker_;
  }

  // An adopted process may end by itself long before the case does, and must not stay a zombie.
  void reap_adopted() const {
    for (;;) {
      siginfo_t info{};
      if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 || info.si_pid == worker_)
        return;
      waitpid(info.si_pid, nullptr, WNOHANG);
    }
  }

  void end_all() {
    KeeperMessage gone;
    gone.word = KeeperWord::gone;
    if (!has_ended()) kill(-worker_, SIGKILL);
    for (int waited_ms = 0; !has_ended() && waited_ms < 200; ++waited_ms) rest(1);
    bool any = kill_adopted(&gone.left);
    // One that is in the kernel's hands may take for ever: the host gives up waiting, this process does not.
    for (long pause_ms = 1; any || !has_ended(); pause_ms = std::min(pause_ms + 1, 20L)) {
      kill(-worker_, SIGKILL);
      rest(pause_ms);
      any = kill_adopted(nullptr);
    }
    rusage usage{};
    if (wait4(worker_, &gone.status, WNOHANG, &usage) == worker_)
      gone.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    tell(gone);
  }

  // Kills every child but the worker: killing one hands its own children to this process, so that it is called until
  // there are none. Returns whether there were any, living or dead.
  bool kill_adopted(LeftRunning* left) {
    bool any = false;
    for_each_child([&](pid_t pid) {
      if (pid == worker_) return;
      any = true;
      if (waitpid(pid, nullptr, WNOHANG) == pid) return;  // had ended already
      if (left) {
        if (left->count < LeftRunning::names_max) copy_process_name(pid, left->names[left->count]);
        ++left->count;
      }
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, WNOHANG);
    });
    return any;
  }

  const pid_t worker_;
};

}  // namespace

void run_keeper(const KeeperPlan& plan) {
  setsid();
  prctl(PR_SET_NAME, keeper_name);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t self = getpid();
  const pid_t worker = fork();
  if (worker < 0) {
    plan.report_failure(plan.context);
    _exit(127);
  }
  if (worker == 0) {
    plan.become_worker(plan.context, self);
    _exit(127);
  }
  // The worker does this as well: whichever comes first, the group exists before anyone signals it.
  setpgid(worker, worker);
  for (int fd = 0; fd < 3; ++fd) dup2(plan.null_fd, fd);
  dup2(plan.channel_fd, keeper_channel_fd);
  close_from(keeper_channel_fd + 1);
  [[maybe_unused]] const int result = chdir("/");  // so that it keeps no file system busy
  Keeper(worker).watch();
}

}  // namespace assay::host::launch
