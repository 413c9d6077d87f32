// The time of a collective on this rank, over the measured steps of a case: what its bandwidths are made of.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/compute/backend.hpp>

#include <chrono>
#include <cstdint>
#include <string>
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
  void end_step(const Launch& launch, Communicator& communicator) {
    if (launch.stage() != ASSAY_STAGE_WARMUP) return;
    take(communicator);
    busy_ms_ = 0, timed_ = 0;
  }
  double mean_ms(Communicator& communicator) {
    take(communicator);
    return wait_blocks_ ? waited_ms_ / static_cast<double>(measured_) : busy_ms_ / static_cast<double>(timed_);
  }

  // All collectives that the communicator has ended, of whatever stage, since its totals were last taken past this
  // object: at the end of set-up.
  std::uint64_t collectives(Communicator& communicator) {
    take(communicator);
    return collectives_;
  }
  // The same as steps. WRONG_RESULT where they are no whole number of steps.
  std::uint64_t steps(Communicator& communicator, std::uint64_t collectives_of_step) {
    const std::uint64_t done = collectives(communicator);
    if (done % collectives_of_step != 0)
      throw Error(ASSAY_WRONG_RESULT, "the communicator counts " + std::to_string(done) +
                                          " collectives, which are no whole number of steps of " +
                                          std::to_string(collectives_of_step));
    return done / collectives_of_step;
  }

 private:
  void take(Communicator& communicator) {
    const Totals totals = communicator.take_totals();
    collectives_ += totals.collectives;
    timed_ += totals.collectives;
    busy_ms_ += totals.busy_ms;
  }

  bool wait_blocks_ = true;  // the caller
  double waited_ms_ = 0;
  std::uint64_t measured_ = 0;
  double busy_ms_ = 0;
  std::uint64_t timed_ = 0, collectives_ = 0;
};

}  // namespace assay::comm
