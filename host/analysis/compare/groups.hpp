// A permutation test for a few runs a side: how often runs that do not differ stand as these do.
#pragma once
#include <cstddef>
#include <vector>

namespace assay::host::compare {

// The chance that all runs of one side are in one state of a machine and all of the other in the other state, where
// each run is in either by a coin, however biased: the largest over all coins. 0.5 for a run a side, 0.125 for two,
// 0.031 for three.
double chance_of_two_states(std::size_t runs_a, std::size_t runs_b);

// So many runs a side are unlikely enough to be in two states that way: below `error`.
std::size_t fewest_runs_within_states(double error);

// Whether the figures of each side all lie on one side of those of the other.
bool are_apart(const std::vector<double>& a, const std::vector<double>& b);

// The share of all ways to deal these figures to sides of these sizes with means at least as far apart: the exact
// two-sided permutation test. Counted by the shift algorithm (Streitberg and Roehmel, Statistical Software Newsletter
// 12, 1986) on figures rounded to a grid.
double chance_of_dealing(const std::vector<double>& a, const std::vector<double>& b);

// By how much larger the error of a difference is than the spread within the sides suggests, where runs near in time
// are alike. `is_b`: the sides of the runs in the order of time. 1 where the sides take turns; where all runs of one
// come first, about 2 for three runs a side and 4 for ten. The levels are taken for an autoregressive process of order
// 1, of the correlation up to 0.95 that makes it largest.
double factor_of_order(const std::vector<bool>& is_b);

}  // namespace assay::host::compare
