// Warm-up, then measured steps until the plan says enough.
#pragma once
#include "measure/recorder.hpp"
#include "measure/stopping.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace assay::host::measure {

struct LoopHooks {
  // Enqueues step `iteration` (0-based, warm-up included). Throws to end the measurement.
  std::function<void(std::uint64_t iteration, bool warmup)> run_step;
  // Between steps, outside every timed window: progress and heartbeats. `total` 0: not known.
  std::function<void(bool warmup, std::int64_t done, std::int64_t total)> after_step;
  // Once, between warm-up and the first measured step.
  std::function<void()> after_warmup;
  // Both empty without other ranks. A stopping rule must see the same figures everywhere, or one rank waits for a step
  // that the others never take: of this rank's new step times the first makes the slowest rank's, and the second
  // replaces this rank's verdict by the one that counts for all.
  std::function<std::vector<double>(std::span<const double> step_ns)> slowest;
  std::function<Verdict(Verdict)> agree;
};

struct LoopResult {
  Samples samples;
  Verdict verdict = Verdict::enough;
  double window_s = 0;  // host time from the first measured step to the last
};

LoopResult measure(Timeline& timeline, Recorder& recorder, const MeasurePlan& plan, const LoopHooks& hooks);

}  // namespace assay::host::measure
