// A step in a short series of levels that resemble each other. Each level is the one before it, times a resemblance,
// and noise (an autoregression of first order); few levels do not show how strong the resemblance is, so that all
// strengths count, each by how well it explains the series (Bayesian model averaging; docs/history.md has the reasons).
#pragma once
#include <cstddef>
#include <span>

namespace assay::host::history {

struct LevelShift {
  std::size_t at = 0;  // the first level after it
  // The chance of a step of such a size at this very place where nothing changed; 1 where nothing was found.
  double chance = 1;
};

// The place at which a step is least by chance, with `least_a_side` levels on either side. Places whose chance is above
// `most_chance` are passed over.
LevelShift clearest_shift(std::span<const double> levels, std::size_t least_a_side, double most_chance);

struct ShiftSize {
  double center = 0, low = 0, high = 0;
};
// How large the step at this place is. At least two levels a side.
ShiftSize size_of_shift(std::span<const double> levels, std::size_t at, double confidence);

}  // namespace assay::host::history
