// Whether a workload that keeps no account of its steps does in a measured step what it does in any other: steps of
// both stages in turns, by their times. It finds what does nothing when it is measured, and no finer fault.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace assay::host::worker {

struct StageTrial {
  std::vector<double> measured_s, other_s;  // in turns
  int steps_together = 1;                   // of each of these times
};

inline constexpr int stage_trial_pairs = 5;
inline constexpr int stage_trial_rounds = 3;  // with new objects; all of them must show the mistake

// `time_step`: takes a step in that stage, waits for the device and returns the seconds that both took.
StageTrial stage_trial(const std::function<double(bool measured)>& time_step);

// "" unless every measured step took less than half of what the shortest other one took. Neighbours and clocks make
// single steps slow, and do not separate the stages.
std::string mistake_in(const StageTrial& trial);

// The same of a workload that stops working for good once it was measured. `measured_s`: measured steps of one new
// object; `anew_s`: other steps of another one, without the first. "" unless a quarter of the former took
// less than half of what the shortest of the latter took.
std::string mistake_in(std::vector<double> measured_s, const std::vector<double>& anew_s);
// Whether that is worth trying: it is so of the warm-up's steps already.
bool is_suspicious(std::vector<double> measured_s, double fastest_warm_up_s);

}  // namespace assay::host::worker
