#include "compare/verdict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "measured_runs.hpp"
#include "noisy_records.hpp"
#include "support/trials.hpp"

namespace assay::host::compare {
namespace {

using assay::test::that_many;

TEST(RunsToSettle, SettleIt) {
  struct Told {
    double slowdown, of_run;
  };
  for (const Told& reported : {Told{0, 0.03}, Told{0, 0.012}, Told{0.05, 0.03}}) {
    NoisyRuns machine(41);
    const Noise noise{reported.of_run, 0.005, 0.3, 0};
    const auto sides_of = [&](std::size_t runs) {
      std::pair<TestedSide, TestedSide> sides{{"A", {}}, {"B", {}}};
      for (std::size_t r = 0; r < runs; ++r) {
        sides.first.runs.push_back(measured(machine.steps(100, 40, noise)));
        sides.second.runs.push_back(measured(machine.steps(100 * (1 + reported.slowdown), 40, noise)));
      }
      return sides;
    };
    // What is known of the machine exactly, so that the estimate itself is held against the simulation.
    Scatter scatter;
    scatter.center = std::log1p(reported.slowdown);
    scatter.measured_variance = scatter.assumed_variance = 2 * reported.of_run * reported.of_run;
    scatter.variance_of_floors = 2 * 0.002 * 0.002;
    scatter.runs = 3;
    const auto runs = runs_to_settle(scatter, {}, 0.95);
    ASSERT_TRUE(runs.has_value());
    int settled = 0, settled_by_half = 0;
    constexpr int kTrials = that_many(100);
    for (int i = 0; i < kTrials; ++i) {
      const auto [a, b] = sides_of(*runs);
      settled += compare_figures(a, b, {}).outcome == Outcome::cannot_tell ? 0 : 1;
      const auto [half_a, half_b] = sides_of(std::max<std::size_t>(2, *runs / 2));
      settled_by_half += compare_figures(half_a, half_b, {}).outcome == Outcome::cannot_tell ? 0 : 1;
    }
    EXPECT_GE(settled, kTrials * 65 / 100 - (kTrials < 50 ? 2 : 0)) << *runs << " runs";
    EXPECT_LE(settled_by_half, kTrials * 60 / 100) << "half of " << *runs << " runs";
  }
}

// The bracketed search has the answer of asking about each number in turn.
TEST(RunsToSettle, TheFewestRunsThatSettleItAreFound) {
  const auto in_turn = [](const Scatter& scatter, const TestOptions& options, double confidence) {
    for (std::size_t runs = std::max<std::size_t>(2, scatter.runs + 1); runs <= most_runs_to_settle; ++runs)
      if (settles(scatter, options, confidence, runs)) return std::optional(runs);
    return std::optional<std::size_t>();
  };
  std::set<std::size_t> seen;
  bool some_never = false;
  for (const double center : {-0.2, -0.021, 0.0, 0.004, 0.03, 0.15})
    for (const double of_run : {0.0, 0.002, 0.01, 0.05, 0.3})
      for (const double states : {0.0, 0.0953, 1.0})
        for (const std::size_t runs : {1, 3, 40, 499, 500, 600})
          for (const double room : {0.0, 0.01, 0.2})
            for (const double of_interval : {0.5, 0.8, 0.95})
              for (const double of_claim : {of_interval, 1 - (1 - of_interval) / 10'000}) {
                Scatter scatter;
                scatter.center = center;
                scatter.measured_variance = of_run * of_run, scatter.assumed_variance = 2 * 0.005 * 0.005;
                scatter.variance_of_floors = 2 * 0.002 * 0.002;
                scatter.room_below = room, scatter.room_above = room / 3;
                scatter.runs = runs, scatter.states = states;
                TestOptions options;
                options.confidence = of_interval;
                const auto expected = in_turn(scatter, options, of_claim);
                EXPECT_EQ(runs_to_settle(scatter, options, of_claim), expected)
                    << center << " " << of_run << " " << states << " " << runs << " " << room << " " << of_claim;
                if (expected) seen.insert(*expected);
                some_never = some_never || !expected;
              }
  EXPECT_GT(seen.size(), 30u);
  EXPECT_TRUE(some_never);
}

}  // namespace
}  // namespace assay::host::compare
