// Warm-up, then measured steps until the plan says enough.
//
// What the host has to do before the window (the ranks meet, the kernel's files are read, the device is asked for its
// telemetry) leaves caches cold and the device idle, and the step after it pays: of 301 published cases below 10 ms a
// step the first sample was the largest in 265, the second in none. So settling steps, which nobody records, come
// between that work and the window, which follows them without a pause.
//
// A training whose figures are compared should take the same number of steps each time, however fast and however quiet
// the machine is. So the settling steps are the last ones of the warm-up, as many as take no more than a moment; only a
// warm-up of at most `fewest_settling_steps`, which has too few to spare, is made longer. A plan without a count of
// steps takes as many as their times ask for anyway, and so it also settles for as long as times fall. Without a
// warm-up the first step of all is asked for, and measured.
#pragma once
#include "measure/recorder.hpp"
#include "measure/stopping.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace assay::host::measure {

// What comes between the host's own work and the window: fewer where so many take longer than a moment, and none where
// one does, which is too long for the host's work to show in it.
inline constexpr std::int64_t fewest_settling_steps = 4, most_settling_steps = 20;
inline constexpr double most_settling_s = 0.05;
inline constexpr int rehearsals = 3;  // of the instruments, right before the first measured step

struct LoopHooks {
  // Enqueues step `iteration` (0-based, warm-up included). Throws to end the measurement.
  std::function<void(std::uint64_t iteration, bool warmup)> run_step;
  // Between steps, outside every timed window: progress and heartbeats. `total` 0: not known; the warm-up may go beyond
  // it by the steps that are added to settle.
  std::function<void(bool warmup, std::int64_t done, std::int64_t total)> after_step;
  // Once, before steps that settle, and so not where there are none; or empty. What a step takes on the device's
  // timeline is known by then, of this rank, from the warm-up. What is chosen now holds for the steps that settle, too.
  std::function<void(double step_ns)> choose_events;
  // Once, before the window and before the steps that settle: whatever takes long.
  std::function<void()> prepare_window;
  // Once, right before the first measured step: whatever takes next to no time.
  std::function<void()> begin_window;
  // Before each sample and each step of the warm-up; enqueues. Empty where caches are left as they are.
  std::function<void()> flush_caches;
  // Both empty without other ranks. All must decide alike, or one waits for a step that the others never take: of this
  // rank's new step times the first makes the slowest rank's, and the second replaces this rank's verdict by the one
  // that counts for all.
  std::function<std::vector<double>(std::span<const double> step_ns)> slowest;
  std::function<Verdict(Verdict)> agree;
};

struct LoopResult {
  Samples samples;
  Verdict verdict = Verdict::enough;
  double window_s = 0;                         // host time from the first measured step to the last
  std::int64_t settling_steps = 0;             // between what prepare_window did and the first measured step
  std::int64_t unrecorded_steps = 0;           // within the window, after looks at the samples
  std::uint64_t iterations = 0;                // all steps that were run
  std::uint64_t iterations_before_window = 0;  // those of them that came before the first measured one
  // The fastest step of the warm-up that was waited for, the first one left out; NaN where there was none.
  double fastest_warm_up_ns = std::numeric_limits<double>::quiet_NaN();
  std::int64_t inner = 1;    // steps of a sample
  double instrument_ns = 0;  // what a sample with nothing in it takes
};

LoopResult measure(Timeline& timeline, Recorder& recorder, const MeasurePlan& plan, const LoopHooks& hooks);

}  // namespace assay::host::measure
