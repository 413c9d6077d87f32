// What it takes to have experts on other ranks, and how evenly they are used: what workloads report of
// expert_ranks.hpp.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/parallel/expert_ranks.hpp>
#include <assay/plugin.hpp>

#include <cstdint>

namespace assay::parallel {

inline constexpr auto rank_imbalance_metric =
    Metric::per_case("rank_imbalance")
        .lower_is_better()
        .help(
            "rows of the busiest rank's experts over the ranks' mean, mean of layers and measured steps; 1: balanced");
inline constexpr auto largest_rank_imbalance_metric =
    Metric::per_case("largest_rank_imbalance")
        .lower_is_better()
        .help("the largest of a layer and step; capacity_factor must not be below it");
inline constexpr auto dispatch_bytes_metric =
    Metric::per_case("dispatch_bytes")
        .unit("bytes")
        .lower_is_better()
        .help(
            "that a rank sends to other ranks' experts in a step: rows and weights forward, gradients backward; "
            "the mean of the ranks; some send more where routing is skewed");
inline constexpr auto combine_bytes_metric =
    Metric::per_case("combine_bytes")
        .unit("bytes")
        .lower_is_better()
        .help("that a rank sends back to the tokens' ranks in a step: results forward, gradients backward");
inline constexpr auto expert_exchange_ms_metric =
    Metric::per_case("expert_exchange_ms")
        .unit("ms")
        .lower_is_better()
        .help(
            "time that counts and rows were under way, mean of the measured steps; includes waiting for ranks that "
            "come later");
inline constexpr auto expert_exchange_exposed_ms_metric = Metric::per_case("expert_exchange_exposed_ms")
                                                              .unit("ms")
                                                              .lower_is_better()
                                                              .help("for so long the computation waited for them");
inline constexpr auto expert_exchanges_metric =
    Metric::per_case("expert_exchanges").help("exchanges of counts and of rows in a step");
inline constexpr auto expert_rank_metrics =
    table(rank_imbalance_metric, largest_rank_imbalance_metric, dispatch_bytes_metric, combine_bytes_metric,
          expert_exchanges_metric, expert_exchange_ms_metric, expert_exchange_exposed_ms_metric);

// `load` and `totals` are of this many measured steps; the totals are those of the experts' communicator.
template <class Launch>
void report_expert_ranks(const Launch& launch, const ExpertLoad& load, const comm::Totals& totals,
                         std::uint64_t measured_steps) {
  if (measured_steps == 0 || load.forwards == 0) return;
  const auto steps = static_cast<double>(measured_steps);
  launch.report(rank_imbalance_metric, load.rank_imbalance);
  launch.report(largest_rank_imbalance_metric, load.largest_rank_imbalance);
  launch.report(dispatch_bytes_metric, static_cast<double>(load.dispatched_bytes) / steps);
  launch.report(combine_bytes_metric, static_cast<double>(load.combined_bytes) / steps);
  launch.report(expert_exchanges_metric, static_cast<double>(totals.collectives) / steps);
  launch.report(expert_exchange_ms_metric, totals.busy_ms / steps);
  launch.report(expert_exchange_exposed_ms_metric, totals.exposed_ms / steps);
}

}  // namespace assay::parallel
