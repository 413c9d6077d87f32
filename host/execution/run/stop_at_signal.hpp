// Calls something at the first signal, while a thread waits where it does not notice one.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <thread>

#include "common/fd.hpp"
#include "launch/launch_error.hpp"
#include "launch/signals.hpp"

namespace assay::host::run {

class StopAtSignal {
 public:
  // `stop` is called on a separate thread, once at most; at once when a signal has come before.
  StopAtSignal(const launch::InterruptHandler& interrupts, std::function<void()> stop)
      : thread_([stop = std::move(stop), fd = interrupts.wake_fd(), leave = leave_.get()] {
          std::array<pollfd, 2> watched{{{fd, POLLIN, 0}, {leave, POLLIN, 0}}};
          while (poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
          }
          if (watched[0].revents != 0) stop();
        }) {}
  ~StopAtSignal() {
    write_end_.reset();  // its reader sees the end
    thread_.join();
  }
  StopAtSignal(const StopAtSignal&) = delete;
  StopAtSignal& operator=(const StopAtSignal&) = delete;

 private:
  static Fd make_pipe(Fd& write_end) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw launch::LaunchError::from_errno("cannot create a pipe");
    write_end = Fd(ends[1]);
    return Fd(ends[0]);
  }
  Fd write_end_;
  Fd leave_ = make_pipe(write_end_);
  std::thread thread_;
};

}  // namespace assay::host::run
