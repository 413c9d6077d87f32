#include "worker/stage_trial.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::host::worker {
namespace {

constexpr double least_share = 0.5;
// Below it a step is made of calls, clocks and the waking up of threads, whatever it does.
constexpr double shortest_s = 2e-4;
// Steps are timed so many in a row that they take about this long together.
constexpr double timed_together_s = 1e-3;
constexpr int most_together = 1000;

// A quarter of the samples took no more than this.
double quarter_of(std::vector<double>& samples_s) {
  const auto at = samples_s.begin() + static_cast<std::ptrdiff_t>(samples_s.size() / 4);
  std::nth_element(samples_s.begin(), at, samples_s.end());
  return *at;
}

}  // namespace

StageTrial stage_trial(const std::function<double(bool measured)>& time_step) {
  const double one_s = time_step(false);
  const int together =
      one_s > 0 ? static_cast<int>(std::clamp(timed_together_s / one_s, 1.0, 1.0 * most_together)) : most_together;
  const auto time_steps = [&](bool measured) {
    double sum_s = 0;
    for (int step = 0; step < together; ++step) sum_s += time_step(measured);
    return sum_s;
  };
  StageTrial trial;
  for (int pair = 0; pair < stage_trial_pairs; ++pair) {
    trial.other_s.push_back(time_steps(false));
    trial.measured_s.push_back(time_steps(true));
  }
  trial.steps_together = together;
  return trial;
}

std::string mistake_in(const StageTrial& trial) {
  if (trial.measured_s.empty() || trial.other_s.empty()) return "";
  const double measured = *std::max_element(trial.measured_s.begin(), trial.measured_s.end());
  const double other = *std::min_element(trial.other_s.begin(), trial.other_s.end());
  if (other < shortest_s || measured >= least_share * other) return "";
  return fmt::format(
      "in {} turns of {} measured and other steps the slowest measured ones took {:.3g} ms, the fastest others {:.3g} "
      "ms: a measured step skips work",
      trial.measured_s.size(), trial.steps_together, measured * 1e3, other * 1e3);
}

bool is_suspicious(std::vector<double> measured_s, double fastest_warm_up_s) {
  if (measured_s.empty() || !(fastest_warm_up_s >= shortest_s)) return false;
  return quarter_of(measured_s) < least_share * fastest_warm_up_s;
}

std::string mistake_in(std::vector<double> measured_s, const std::vector<double>& anew_s) {
  if (anew_s.size() < 2) return "";
  const double shortest = *std::min_element(anew_s.begin() + 1, anew_s.end());
  if (!is_suspicious(measured_s, shortest)) return "";
  return fmt::format(
      "a quarter of the measured steps took at most {:.3g} ms, but a new object's first steps took at least {:.3g} ms "
      "each: a measured step skips work",
      quarter_of(measured_s) * 1e3, shortest * 1e3);
}

}  // namespace assay::host::worker
