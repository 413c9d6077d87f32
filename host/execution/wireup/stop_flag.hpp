// A flag that a poll() can wait for.
#pragma once
#include <atomic>

#include "common/fd.hpp"

namespace assay::host::wireup {

class StopFlag {
 public:
  // Throws WireupError when the system has no descriptor left.
  StopFlag();
  void raise() noexcept;  // for good
  bool raised() const noexcept { return raised_.load(); }
  int fd() const noexcept { return event_.get(); }  // readable from raise() on

 private:
  std::atomic<bool> raised_{false};
  Fd event_;
};

}  // namespace assay::host::wireup
