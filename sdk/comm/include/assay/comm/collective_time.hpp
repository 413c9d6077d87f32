// The time of a collective on this rank, over the measured steps of a case: what its bandwidths are made of.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/compute/backend.hpp>

#include <chrono>
#include <string_view>

namespace assay::comm {

// On the CPU the caller's clock has it, since the caller waits; on a GPU the events around a collective on its stream,
// so that the launch is left out.
class CollectiveTime {
 public:
  CollectiveTime() = default;
  explicit CollectiveTime(const compute::Backend& backend) : wait_blocks_(std::string_view(backend.kind()) == "cpu") {}

  // Runs one collective, or a series of `count` (enqueue returns the ticket), and the wait for it, as the step of
  // `launch` or a part of it.
  template <class Enqueue>
  void run(const Launch& launch, Communicator& communicator, const Enqueue& enqueue, std::uint64_t count = 1) {
    const auto begin = std::chrono::steady_clock::now();
    communicator.wait(enqueue());
    if (launch.stage() != ASSAY_STAGE_MEASURE) return;
    waited_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    measured_ += count;
  }
  // At the end of a step, outside its phases: the totals that mean_ms reads are those of the measured steps.
  static void end_step(const Launch& launch, Communicator& communicator) {
    if (launch.stage() == ASSAY_STAGE_WARMUP) communicator.take_totals();
  }
  double mean_ms(Communicator& communicator) const {
    const Totals totals = communicator.take_totals();
    return wait_blocks_ ? waited_ms_ / static_cast<double>(measured_)
                        : totals.busy_ms / static_cast<double>(totals.collectives);
  }

 private:
  bool wait_blocks_ = true;  // the caller
  double waited_ms_ = 0;
  std::uint64_t measured_ = 0;
};

}  // namespace assay::comm
