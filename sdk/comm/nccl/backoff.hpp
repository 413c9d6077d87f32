// Waits for what gives no signal. At first it asks again at once: a small collective takes some microseconds, and
// giving up the processor takes one. Then it yields without sleeping, as most waits are short and a sleep of 50 us
// takes twice that. Then it sleeps in small steps, which lengthen a long wait by no more than a percent.
#pragma once
#include <chrono>
#include <thread>

namespace assay::comm::nccl {

class Backoff {
 public:
  void pause() {
    if (asked_ < asked_at_once)
      ++asked_;
    else if (waited_for(std::chrono::milliseconds(10)))
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    else
      std::this_thread::yield();
  }
  bool waited_for(std::chrono::microseconds time) const { return std::chrono::steady_clock::now() - begin_ > time; }

 private:
  static constexpr int asked_at_once = 50;  // of some 0.5 us each, where it is the GPU that is asked
  int asked_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace assay::comm::nccl
