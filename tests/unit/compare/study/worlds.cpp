#include "worlds.hpp"

#include <algorithm>
#include <stdexcept>

namespace assay::host::compare::study {
namespace {

constexpr double kStepMs = 10;
// A time is positive, however far the noise goes.
constexpr double kLeast = 0.05;

std::vector<World> all_worlds() {
  return {
      {.name = "iid"},
      {.name = "ar-0.8", .resemblance = 0.8},
      {.name = "ar-0.8-wide", .noise = 0.03, .resemblance = 0.8},
      {.name = "ar-0.95", .resemblance = 0.95},
      {.name = "ar-0.95-wide", .noise = 0.03, .resemblance = 0.95},
      {.name = "modes-within", .step_mode = 0.08},
      {.name = "modes-between", .noise = 0.003, .run_mode = 0.08},
      {.name = "drift", .drift = 0.03},
      {.name = "drift-quiet", .noise = 0.003, .drift = 0.03},
      {.name = "tail-4", .noise = 0.002, .slow_share = 0.04, .slow_factor = 2},
      {.name = "tail-10", .noise = 0.002, .slow_share = 0.1, .slow_factor = 1.5},
      {.name = "bad-run", .noise = 0.003, .bad_share = 0.15, .bad_factor = 1.1},
      {.name = "lognormal-0.1", .noise = 0.1, .is_lognormal = true},
      {.name = "lognormal-0.3", .noise = 0.3, .is_lognormal = true},
      {.name = "runs-ar-0.8", .run_noise = 0.01, .run_resemblance = 0.8},
      {.name = "runs-ar-0.95", .run_noise = 0.01, .run_resemblance = 0.95},
      {.name = "runs-ar-0.8-blocks", .run_noise = 0.01, .run_resemblance = 0.8, .in_blocks = true},
      {.name = "runs-ar-0.95-blocks", .run_noise = 0.01, .run_resemblance = 0.95, .in_blocks = true},
  };
}

}  // namespace

const std::vector<World>& worlds() {
  static const std::vector<World> all = all_worlds();
  return all;
}

const World& world_of(const std::string& name) {
  const auto found =
      std::find_if(worlds().begin(), worlds().end(), [&name](const World& world) { return world.name == name; });
  if (found == worlds().end()) throw std::out_of_range("there is no world " + name);
  return *found;
}

RunState RunStates::next() {
  const double fresh = std::sqrt(1 - world_.run_resemblance * world_.run_resemblance);
  before_ = world_.run_resemblance * before_ + fresh * random_.normal();
  const bool is_in_other_mode = random_.happens(0.5), is_bad = random_.happens(world_.bad_share);
  RunState state;
  state.level = 1 + world_.run_noise * before_;
  if (is_in_other_mode) state.level *= 1 + world_.run_mode;
  if (is_bad) state.level *= world_.bad_factor;
  state.growth = world_.drift * (2 * random_.uniform() - 1);
  return state;
}

std::vector<double> steps_of(const World& world, const RunState& state, std::size_t n, Random& random) {
  const double fresh = std::sqrt(1 - world.resemblance * world.resemblance);
  double before = random.normal();
  bool is_in_other_mode = random.happens(0.5);
  std::vector<double> steps(n);
  for (std::size_t i = 0; i < n; ++i) {
    before = world.resemblance * before + fresh * random.normal();
    const double noise = world.is_lognormal ? std::exp(world.noise * before) : 1 + world.noise * before;
    double factor = std::max(noise, kLeast) * state.level;
    factor *= 1 + state.growth * static_cast<double>(i) / static_cast<double>(n);
    if (world.slow_share > 0 && random.happens(world.slow_share)) factor *= world.slow_factor;
    if (world.step_mode > 0) {
      if (random.happens(1 / world.mode_steps)) is_in_other_mode = !is_in_other_mode;
      if (is_in_other_mode) factor *= 1 + world.step_mode;
    }
    steps[i] = kStepMs * factor;
  }
  return steps;
}

}  // namespace assay::host::compare::study
