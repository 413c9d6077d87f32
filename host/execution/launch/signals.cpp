#include "launch/signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "launch/launch_error.hpp"

namespace assay::host::launch {
namespace {

// What a signal handler can reach is global by nature. Written by InterruptHandler and by the handler alone.
struct Interrupts {
  std::atomic<bool> taken{false};
  std::atomic<int> count{0};
  std::atomic<int> last_signal{0};
  std::atomic<int> read_fd{-1}, write_fd{-1};
};
Interrupts interrupts;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not take a lock");

void on_interrupt(int signal) {
  const int error = errno;
  interrupts.last_signal.store(signal);
  if (interrupts.count.fetch_add(1) >= 2) _exit(128 + signal);
  const char byte = 0;
  [[maybe_unused]] const ssize_t n = write(interrupts.write_fd.load(), &byte, 1);
  errno = error;
}

}  // namespace

InterruptHandler::InterruptHandler() {
  if (interrupts.taken.exchange(true)) throw LaunchError("interrupts are already handled in this process");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    interrupts.taken = false;
    throw LaunchError::from_errno("cannot create the interrupt pipe");
  }
  interrupts.count = 0;
  interrupts.last_signal = 0;
  interrupts.read_fd = ends[0];
  interrupts.write_fd = ends[1];
  for (std::size_t i = 0; i < handled_.size(); ++i) {
    sigaction(handled_[i], nullptr, &before_[i]);
    if (handled_[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_handler = handled_[i] == SIGPIPE ? SIG_IGN : on_interrupt;
    // Restarted: only poll() needs to notice, and it is never restarted.
    action.sa_flags = SA_RESTART;
    sigaction(handled_[i], &action, nullptr);
  }
}

InterruptHandler::~InterruptHandler() {
  for (std::size_t i = 0; i < handled_.size(); ++i) sigaction(handled_[i], &before_[i], nullptr);
  close(interrupts.read_fd.exchange(-1));
  close(interrupts.write_fd.exchange(-1));
  interrupts.taken = false;
}

const std::atomic<int>* InterruptHandler::count() const noexcept { return &interrupts.count; }
int InterruptHandler::wake_fd() const noexcept { return interrupts.read_fd; }
int InterruptHandler::last_signal() const noexcept { return interrupts.last_signal; }

}  // namespace assay::host::launch
