// A training step on many ranks, expected from the same step on few: its computation goes by what ranks share, its
// messages cost what the wire's model says.
#pragma once
#include "forecast/measured_steps.hpp"
#include "forecast/scaling.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay::host::forecast {

// A link between machines, where it is another one than between the ranks of a machine.
struct Network {
  int ranks_per_machine = 1;
  double latency_s = 0;
  double seconds_per_byte = 0;  // of each rank's share of it: a machine has as many shares as ranks
};

struct Assumptions {
  std::vector<Wire> wires;  // of the family's link, one for each algorithm; the faster one is taken for each message
  std::optional<Network> network;
  std::string wires_of;  // another link that the wires were measured on, in place of the family's; "": its own
};

// The step of the family that the one on so many ranks is expected from: of those on the ranks in `from` the one on the
// most that are not more than these, or else on the fewest. One rank shows nothing of several: they are expected from
// two or more; `from` names one of them.
const MeasuredStep& basis_of(const StepFamily& family, const std::set<int>& from, int ranks);

struct StepForecast {
  int ranks = 0;
  double compute_s = 0;        // without communication
  double bubble_s = 0;         // of a pipeline that fills and empties
  double communication_s = 0;  // all collectives of the step, one after the other
  double exposed_s = 0;        // that the step waits for them
  double slowed_s = 0;         // what the measured step took beyond the model
  double step_s = 0;           // the sum of the first two and the last two
  double efficiency = 0;       // a rank's work on one rank over this step
  double items_per_s = 0;      // of all ranks
  Algorithm algorithm = Algorithm::ring;
  std::optional<double> measured_s;  // where a record has it
  bool is_basis = false;             // that record is what it is expected from
};

// Why a step cannot be on so many ranks: it has too few experts, or layers. "" where it can.
std::string why_impossible(const MeasuredStep& step, int ranks);

// Why nothing can be expected on these numbers of ranks, in a sentence that names the figures: a measured step that is
// much shorter than its own computation and what its collectives alone are to take by the records of the wires, or that
// leaves no time to compute. "" where the records agree.
std::string contradiction_in(const StepFamily& family, const std::set<int>& from, const std::vector<int>& ranks,
                             const Assumptions& assumptions);

// One for each of `ranks`, from the steps of the family with the numbers of ranks in `from`, which do not contradict
// each other. No step is shorter than its computation, but one that was measured so.
std::vector<StepForecast> forecasts(const StepFamily& family, const std::set<int>& from, const std::vector<int>& ranks,
                                    const Assumptions& assumptions);

}  // namespace assay::host::forecast
