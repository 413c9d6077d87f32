// The telemetry and validity of several ranks as those of their case (docs/record.md, "Ranks").
#pragma once
#include "results/merge_ranks.hpp"

#include <vector>

namespace assay::host {

// Figures: the mean of the ranks' means, the least and the largest. Energy: of all devices, one that ranks share
// counted once. Everything else: the largest. Null when no rank has any.
Record merged_telemetry(const std::vector<const RankPart*>& ranks);

// The verdict of the rank that fares worst, with the rank named where the others fare better. Null when no rank has
// one.
Record merged_validity(const std::vector<const RankPart*>& ranks);

// For a rank's entry of by_rank: {"gpu_utilisation_percent": its mean, ..., "energy_j"}.
Record telemetry_means(const RankPart& rank);

}  // namespace assay::host
