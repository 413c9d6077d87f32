// What it costs a thread on this machine to wait for another: by sleeping, and by spinning.
#pragma once
#include <chrono>
#include <cstdint>

namespace assay::host::telemetry {

struct WaitCosts {
  double sleep_us = 0;      // to fall asleep on one processor and be woken by another, both ways; 0: unknown
  double iteration_ns = 0;  // of a loop that looks at a word of memory and pauses, as OpenMP's does
};
// Takes some milliseconds, on two threads that are bound to two processors for so long; on a busy machine up to 20.
WaitCosts measure_wait_costs();

// Whoever waits spins for as long as a sleep costs before it sleeps: so it never loses more than twice what the better
// of both would have cost. Spinning on is what ruins a step whose other thread waits for the very processor.
struct SpinBound {
  std::int64_t count = 0;  // of iterations, a power of two
  double us = 0;
};
SpinBound spin_bound(const WaitCosts& costs);

}  // namespace assay::host::telemetry
