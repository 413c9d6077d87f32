// Series of runs among which nothing changes, as machines have them: what the unit tests and the study put before the
// search for changes.
#pragma once
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace assay::host::history {

struct World {
  std::string name;
  double deviation = 0.01;  // of a run's level, without what follows
  double resemblance = 0;   // of a level to the one before it (AR(1)); the deviation is that of single levels
  double slow_share = 0;    // of runs that take `slow_by` as long again
  double slow_by = 0;
  double stays = 0;        // the chance that a slow run is followed by a slow one, beyond that of any run
  bool is_skewed = false;  // a lognormal share on top in place of a normal one
};

// Logarithms of the figures of so many runs.
inline std::vector<double> levels_of(const World& world, std::size_t runs, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0, 1);
  const double rest = std::sqrt(1 - world.resemblance * world.resemblance);
  double wandering = normal(random);
  bool is_slow = uniform(random) < world.slow_share;
  std::vector<double> levels;
  for (std::size_t i = 0; i < runs; ++i) {
    const double noise =
        world.is_skewed ? std::log1p(world.deviation * std::exp(wandering)) : world.deviation * wandering;
    levels.push_back(std::log(100) + noise + (is_slow ? std::log1p(world.slow_by) : 0));
    wandering = world.resemblance * wandering + rest * normal(random);
    if (uniform(random) >= world.stays) is_slow = uniform(random) < world.slow_share;
  }
  return levels;
}

// The same with the level by so much higher from a run on.
inline std::vector<double> with_step(std::vector<double> levels, std::size_t at, double by) {
  for (std::size_t i = at; i < levels.size(); ++i) levels[i] += std::log1p(by);
  return levels;
}

inline std::vector<World> worlds_without_change() {
  return {
      {.name = "independent, 0.3%", .deviation = 0.003},
      {.name = "independent, 1%", .deviation = 0.01},
      {.name = "AR(0.5), 1%", .deviation = 0.01, .resemblance = 0.5},
      {.name = "AR(0.8), 1%", .deviation = 0.01, .resemblance = 0.8},
      {.name = "AR(0.8), 2%", .deviation = 0.02, .resemblance = 0.8},
      {.name = "AR(0.95), 0.5%", .deviation = 0.005, .resemblance = 0.95},
      {.name = "AR(0.95), 1%", .deviation = 0.01, .resemblance = 0.95},
      {.name = "AR(0.95), 2%", .deviation = 0.02, .resemblance = 0.95},
      {.name = "15% of runs 10% slow, 0.3%", .deviation = 0.003, .slow_share = 0.15, .slow_by = 0.1},
      {.name = "15% of runs 10% slow, 1%", .deviation = 0.01, .slow_share = 0.15, .slow_by = 0.1},
      {.name = "15% of runs 10% slow, AR(0.8), 1%",
       .deviation = 0.01,
       .resemblance = 0.8,
       .slow_share = 0.15,
       .slow_by = 0.1},
      {.name = "two modes 8% apart, 0.3%", .deviation = 0.003, .slow_share = 0.5, .slow_by = 0.08},
      {.name = "two modes 8% apart, 1%", .deviation = 0.01, .slow_share = 0.5, .slow_by = 0.08},
      {.name = "lognormal, typically 3%", .deviation = 0.03, .is_skewed = true},
  };
}

}  // namespace assay::host::history
