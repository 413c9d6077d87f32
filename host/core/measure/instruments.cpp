#include "measure/instruments.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::host::measure {
namespace {

constexpr int first_samples = 5;  // of code and device that have not done this before
constexpr int samples = 21;
constexpr double wanted_over_cost = 100;
constexpr double resolution_ns = 1000;
// By how much more a sample is tried to be longer than it has to be, and how far the number of steps may leap: of one
// step most may be the wait.
constexpr double margin = 1.1;
constexpr std::int64_t least_leap = 2, largest_leap = 16;

}  // namespace

double empty_sample_ns(Timeline& timeline, Recorder& recorder, bool sync) {
  std::vector<double> ns;
  ns.reserve(first_samples + samples);
  recorder.discard();
  for (int i = 0; i < first_samples + samples; ++i) {
    const std::int64_t begin_ns = timeline.host_now_ns();
    recorder.begin_step();
    recorder.end_step();
    if (!sync) continue;
    timeline.synchronize();
    ns.push_back(static_cast<double>(timeline.host_now_ns() - begin_ns));
    recorder.flush();
  }
  if (!sync) {
    timeline.synchronize();
    recorder.flush();
    ns = recorder.step_device_ns();
  }
  recorder.discard();
  const auto first = ns.begin() + first_samples, middle = first + samples / 2;
  std::nth_element(first, middle, ns.end());
  return *middle;
}

double worthwhile_sample_ns(double instrument_ns) { return wanted_over_cost * std::max(instrument_ns, resolution_ns); }

std::int64_t larger_inner(std::int64_t inner, double ns, double wanted_ns) {
  const double needed = std::ceil(static_cast<double>(inner) * margin * wanted_ns / std::max(ns, 1.0));
  const double leap =
      std::clamp(needed, static_cast<double>(least_leap * inner), static_cast<double>(largest_leap * inner));
  return std::min(most_inner_steps, static_cast<std::int64_t>(leap));
}

}  // namespace assay::host::measure
