// How the work of one rank changes with the number of ranks.
#pragma once
#include "forecast/measured_steps.hpp"

#include <set>

namespace assay::host::forecast {

// A step without its communication, as it was measured.
double compute_of(const MeasuredStep& step);

// What a rank computes on n ranks: fixed + shared / n, of one rank of a machine with processors for all.
struct ComputeScaling {
  double fixed = 1, shared = 0;
  std::set<int> ranks;  // whose measured steps separate the two; empty: they are as the workload's kind has it

  double of(int n) const { return fixed + shared / n; }
};
// From the family's steps on these numbers of ranks. Of a step whose ranks all compute the same, nothing is shared;
// otherwise two numbers of ranks separate the two, and of one number all of a batch, or nothing of an update, is taken
// to be shared.
ComputeScaling scaling_of(const StepFamily& family, const std::set<int>& from);

// Rows of the busiest rank over the mean of n ranks, where it was `imbalance` on `measured_ranks`: loads of experts are
// taken to be independent of one another, so that those of ranks, which are sums of them, spread the more the fewer
// experts a rank has.
double imbalance_on(int n, double imbalance, int measured_ranks);

// The work of the rank with most of it over the mean of n ranks, whose layers are whole: as pipeline_parallel shares
// them out. 1 where the records do not say what the head is.
double stage_imbalance_on(int n, const PipelineShape& shape);

// For how much of its work the rank with most of it waits for others while micro-batches fill and leave the pipeline:
// (p / i - 1) / (v m) of what is not the update, with p ranks, m micro-batches, v virtual stages and that rank's work i
// over the mean (Narayanan et al. 2021 with i = 1, Zheng et al. 2022 with v = 1). 0 without a pipeline.
double bubble_of(const MeasuredStep& step, int ranks);

}  // namespace assay::host::forecast
