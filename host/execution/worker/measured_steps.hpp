// When each measured step began and ended, and what it held at most: for the figures that only long steps have.
#pragma once
#include "measure/stopping.hpp"

#include <cstdint>
#include <vector>

namespace assay::host::worker {

// Allocates when it is made, and not between steps. With sync = false nobody on the host knows when a step ended: it
// stays empty then.
class MeasuredSteps {
 public:
  explicit MeasuredSteps(const measure::MeasurePlan& plan);

  void begin();                       // of the first one
  void end(std::int64_t peak_bytes);  // of each; the next one begins

  // On the steady clock: the begin of the first step and the end of each.
  const std::vector<double>& bounds_s() const { return bounds_s_; }
  // Of each step; empty where one is too short to be looked at by itself, as an epoch is.
  std::vector<double> peaks_mib() const;

 private:
  bool is_known_;
  std::vector<double> bounds_s_;
  std::vector<std::int64_t> peak_bytes_;
};

}  // namespace assay::host::worker
