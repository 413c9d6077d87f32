#include "worker/stage_trial.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay::host::worker {
namespace {

constexpr double least_share = 0.5;
constexpr double shortest_s = 2e-6;  // below it the call and the clock are most of a step

// A quarter of the samples took no more than this.
double quarter_of(std::vector<double>& samples_s) {
  const auto at = samples_s.begin() + static_cast<std::ptrdiff_t>(samples_s.size() / 4);
  std::nth_element(samples_s.begin(), at, samples_s.end());
  return *at;
}

}  // namespace

StageTrial stage_trial(const std::function<double(bool measured)>& time_step) {
  StageTrial trial;
  for (int pair = 0; pair < stage_trial_pairs; ++pair) {
    trial.other_s.push_back(time_step(false));
    trial.measured_s.push_back(time_step(true));
  }
  return trial;
}

std::string mistake_in(const StageTrial& trial) {
  if (trial.measured_s.empty() || trial.other_s.empty()) return "";
  const double measured = *std::max_element(trial.measured_s.begin(), trial.measured_s.end());
  const double other = *std::min_element(trial.other_s.begin(), trial.other_s.end());
  if (other < shortest_s || measured >= least_share * other) return "";
  return fmt::format(
      "of {} measured steps taken in turns with as many others, the longest took {:.3g} ms and the shortest other one "
      "{:.3g} ms: a measured step does less than its work",
      trial.measured_s.size(), measured * 1e3, other * 1e3);
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
      "a quarter of the measured steps took at most {:.3g} ms, and each of the first steps of a new object of the "
      "workload at least {:.3g} ms: a measured step does less than its work",
      quarter_of(measured_s) * 1e3, shortest * 1e3);
}

}  // namespace assay::host::worker
