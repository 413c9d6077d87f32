// Which of several ways to do the same is the fastest, found by doing it. Knows neither oneDNN nor a clock: tests play
// the times.
//
// A processor is rarely ours alone. A round during which a thread of ours waited for one does not count. What a
// neighbour does beside that (caches, clocks, a virtual machine's own rounds) only ever makes a run longer, so the
// figure of a candidate is the lower quartile of the rounds that count. Candidates take turns, so that what changes
// meets all alike. The choice without timing stays unless another is clearly faster, and also if the times do not show
// which is faster: two processes, and two ranks, then choose alike more often than not.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace assay::cpu {

// One run.
struct TimedRun {
  double seconds = 0.0;
  bool is_disturbed = false;  // a thread waited for a processor
};

struct ChoiceLimits {
  int rounds_least = 5, rounds_most = 25;  // of each candidate, undisturbed; and of all rounds
  double seconds = 0.4;                    // of all runs together, beyond the least number of rounds
  double clear_gain = 0.05;                // of the first candidate's time: what another must save to be taken
  double steady_margin = 0.05;             // a figure is steady when it is within this of the shortest round
};

// Whether two contests that ran one after the other name the same candidate, with figures that are alike.
struct TimedChoice;
bool agree(const TimedChoice& one, const TimedChoice& other, const ChoiceLimits& limits = {});

struct TimedChoice {
  std::size_t candidate = 0;
  double seconds = 0.0;        // its figure
  std::size_t measured = 0;    // candidates that ran
  bool is_steady = false;      // else `candidate` is the first
  double spent_seconds = 0.0;  // on all runs
};

// The lower quartile, between values that there are; of one value that.
double lower_quartile(std::vector<double> values);

// Chooses among candidates 0 to count - 1. `time` runs one; nothing where it cannot run, which the first must. The
// first run of each is for its caches and code alone. Candidates that are far behind after two undisturbed rounds
// leave; the first stays.
TimedChoice choose_by_time(std::size_t count, const std::function<std::optional<TimedRun>(std::size_t)>& time,
                           const ChoiceLimits& limits = {});

}  // namespace assay::cpu
