#include "forecast/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace assay::host::forecast {
namespace {

// The expected largest of n independent normal numbers, in standard deviations: the integral of x n p(x) P(x)^(n - 1).
double expected_largest(int n) {
  constexpr double farthest = 9;  // standard deviations; beyond them nothing counts
  constexpr int intervals = 3600;
  constexpr double width = 2 * farthest / intervals;
  double sum = 0;
  for (int i = 0; i <= intervals; ++i) {
    const double x = -farthest + i * width;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    sum += x * n * density * std::pow(below, n - 1);
  }
  return sum * width;
}

// Of the ranks' loads, whose mean is fixed, the largest is beyond it in proportion to this.
double spread_of(int ranks) { return std::sqrt(static_cast<double>(ranks)) * expected_largest(ranks); }

}  // namespace

double compute_of(const MeasuredStep& step) {
  return step.silent_s ? *step.silent_s : std::max(0.0, step.step_s - step.exposed_s());
}

ComputeScaling scaling_of(const StepFamily& family, const std::set<int>& from) {
  const Computation computation = family.steps.back().computation;
  if (computation == Computation::same) return {};
  // Relative differences of fixed + shared / n from what was measured, least squares.
  double ff = 0, fs = 0, ss = 0, f1 = 0, s1 = 0;
  std::set<int> ranks;
  for (const MeasuredStep& step : family.steps) {
    if (!from.contains(step.ranks)) continue;
    const double crowd = crowding(ranks_of_machine(step, step.ranks), step.ranks_at_full_speed);
    const double of_experts = step.experts ? 1 + step.experts->share_of_compute * (step.experts->imbalance - 1) : 1.0;
    const double imbalance = of_experts * (step.pipeline ? stage_imbalance_on(step.ranks, *step.pipeline) : 1.0);
    const double seconds = compute_of(step) / crowd / imbalance;
    if (!(seconds > 0)) continue;
    const double fixed = 1 / seconds, shared = fixed / step.ranks;
    ff += fixed * fixed, fs += fixed * shared, ss += shared * shared, f1 += fixed, s1 += shared;
    ranks.insert(step.ranks);
  }
  const bool is_batch = computation == Computation::shared;
  if (ranks.size() < 2) return is_batch ? ComputeScaling{0, 1, {}} : ComputeScaling{1, 0, {}};
  const double determinant = ff * ss - fs * fs;
  const double fixed = (f1 * ss - s1 * fs) / determinant, shared = (s1 * ff - f1 * fs) / determinant;
  if (shared <= 0) return {1, 0, ranks};
  if (fixed <= 0) return {0, 1, ranks};
  return {fixed, shared, ranks};
}

double imbalance_on(int n, double imbalance, int measured_ranks) {
  if (n < 2) return 1;
  if (measured_ranks < 2) return imbalance;
  return 1 + (imbalance - 1) * spread_of(n) / spread_of(measured_ranks);
}

double stage_imbalance_on(int n, const PipelineShape& shape) {
  const double v = shape.virtual_stages, stages = n * v;
  if (!shape.head_layers || n < 2 || shape.layers < stages) return 1;
  const double head = *shape.head_layers, mean = (shape.layers + head) / n;
  if (!shape.by_work) {
    // Each stage has as many layers; what is left over goes to the first stages, one layer to each.
    const double of_each = std::floor(shape.layers / stages) * v, left = std::fmod(shape.layers, stages);
    return std::max(of_each + std::ceil(left / n), of_each + std::floor(left / n) + head) / mean;
  }
  // Each stage has one layer; of the other layers the last rank takes about as many as make all ranks equal.
  const double left = shape.layers - stages, even = std::floor((left - (n - 1) * head) / n);
  double most = left + v + head;
  for (const double each : {even, even + 1}) {
    const double of_last = std::clamp(each, 0.0, left);
    most = std::min(most, std::max(v + std::ceil((left - of_last) / (n - 1)), v + head + of_last));
  }
  return most / mean;
}

double bubble_of(const MeasuredStep& step, int ranks) {
  if (!step.pipeline) return 0;
  const PipelineShape& shape = *step.pipeline;
  const double others = ranks / stage_imbalance_on(ranks, shape) - 1;
  return shape.share_of_micro_batches * others / (shape.virtual_stages * shape.micro_batches);
}

}  // namespace assay::host::forecast
