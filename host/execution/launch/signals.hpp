// SIGINT, SIGTERM and SIGHUP, made into a number that can be read and a descriptor that can be polled.
//
// The first signal asks to finish: workers are stopped, finished cases are kept. The second stops workers without
// grace. The third ends the host at once (its workers die with it).
#pragma once
#include <signal.h>

#include <array>
#include <atomic>

namespace assay::host::launch {

class InterruptHandler {
 public:
  // One at a time in a process; a second throws LaunchError. SIGHUP stays ignored where it was (nohup). SIGPIPE is
  // ignored from here on: a closed pipe is an error of the write.
  InterruptHandler();
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

  const std::atomic<int>* count() const noexcept;  // signals so far; for supervise_group()
  int wake_fd() const noexcept;                    // readable from the first signal on; never read from it
  int last_signal() const noexcept;                // 0: none

 private:
  static constexpr std::array handled_ = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  std::array<struct sigaction, handled_.size()> before_{};
};

}  // namespace assay::host::launch
