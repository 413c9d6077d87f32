// Machines that are played: how the steps of a run scatter, and how runs of one thing differ.
#pragma once
#include "random.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace assay::host::compare::study {

// All figures are relative to a step of 10 ms.
struct World {
  std::string name;
  // Of steps.
  double noise = 0.01;     // standard deviation of each step, whatever the steps before it
  double resemblance = 0;  // of a step's noise to that of the one before it
  bool is_lognormal = false;
  double slow_share = 0;   // of the steps
  double slow_factor = 1;  // what they take
  double step_mode = 0;    // two states of the machine lie so far apart
  double mode_steps = 50;  // that a state lasts in the mean
  double drift = 0;        // a run grows by up to so much, or becomes as much less, from its first step to its last
  // Of runs.
  double run_mode = 0;         // half of all runs take so much longer
  double bad_share = 0;        // of the runs
  double bad_factor = 1;       // what they take
  double run_noise = 0;        // standard deviation of a run's level
  double run_resemblance = 0;  // of it to that of the run before
  bool in_blocks = false;      // all runs of A, then all of B; else in turns

  bool runs_differ() const { return run_mode > 0 || bad_share > 0 || run_noise > 0 || drift > 0; }
};

const std::vector<World>& worlds();
// Throws std::out_of_range.
const World& world_of(const std::string& name);

// What a run has throughout.
struct RunState {
  double level = 1;
  double growth = 0;  // from its first step to its last
};

// The states of runs, one after the other.
class RunStates {
 public:
  RunStates(const World& world, std::uint64_t seed) : world_(world), random_(seed), before_(random_.normal()) {}
  RunState next();

 private:
  const World& world_;
  Random random_;
  double before_;
};

// The times of one run's steps in ms.
std::vector<double> steps_of(const World& world, const RunState& state, std::size_t n, Random& random);

}  // namespace assay::host::compare::study
