#include "history/level_shift.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

namespace assay::host::history {
namespace {

// In double precision: that of long double takes ten times as long.
using Student =
    boost::math::students_t_distribution<double,
                                         boost::math::policies::policy<boost::math::policies::promote_double<false>>>;

// Strengths of the resemblance. They lie closer where a little more makes the levels wander farther.
constexpr std::array kResemblances{0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.87, 0.93, 0.97, 0.99};
constexpr std::size_t kCount = kResemblances.size();
// Figures that are accounted have no noise; this much of it, relative, keeps them finite.
constexpr double kLeastNoise = 1e-9;
// A weight that changes no result.
constexpr double kNoWeight = 1e-9;
constexpr double kParameters = 2;  // of the model with a step: the level and the step

// Uniform from 0 to 1: a strength stands for all up to the middle between it and the next.
double prior_of(std::size_t i) {
  const double below = i == 0 ? 0 : (kResemblances[i - 1] + kResemblances[i]) / 2;
  const double above = i + 1 == kCount ? 1 : (kResemblances[i] + kResemblances[i + 1]) / 2;
  return above - below;
}

// Least squares of the levels less their resemblance to the ones before, for one strength.
class Whitened {
 public:
  Whitened(std::span<const double> levels, double resemblance)
      : rest_(1 - resemblance), first_(std::sqrt(1 - resemblance * resemblance)), whitened_(levels.size()) {
    const std::size_t n = levels.size();
    double mean = 0;
    for (const double level : levels) mean += level / static_cast<double>(n);
    whitened_[0] = first_ * (levels[0] - mean);
    for (std::size_t i = 1; i < n; ++i) whitened_[i] = levels[i] - mean - resemblance * (levels[i - 1] - mean);
    sums_from_.assign(n + 1, 0);
    for (std::size_t i = n; i-- > 0;) sums_from_[i] = sums_from_[i + 1] + whitened_[i];
    constant_squares_ = first_ * first_ + static_cast<double>(n - 1) * rest_ * rest_;
    constant_product_ = first_ * whitened_[0] + rest_ * sums_from_[1];
    for (const double x : whitened_) squares_ += x * x;
    squares_ -= constant_product_ * constant_product_ / constant_squares_;
  }

  struct Fit {
    double step = 0, information = 0;  // the step's variance is that of the noise over the information
    double squares = 0;                // left with the step
    double t_squared = 0;
  };
  Fit fit(std::size_t at) const {
    const std::size_t n = whitened_.size();
    const double after = static_cast<double>(n - at - 1);
    const double step_squares = 1 + after * rest_ * rest_, both = rest_ + after * rest_ * rest_;
    const double product = whitened_[at] + rest_ * sums_from_[at + 1] - both * constant_product_ / constant_squares_;
    Fit fit;
    fit.information = step_squares - both * both / constant_squares_;
    fit.step = product / fit.information;
    fit.squares = std::max(squares_ - product * fit.step, static_cast<double>(n) * kLeastNoise * kLeastNoise);
    fit.t_squared = freedom() * product * fit.step / fit.squares;
    return fit;
  }
  // The logarithm of the restricted likelihood of this strength, but for a constant.
  double log_likelihood(const Fit& fit) const {
    return std::log(first_) - 0.5 * std::log(constant_squares_ * fit.information) -
           0.5 * freedom() * std::log(fit.squares);
  }
  double freedom() const { return static_cast<double>(whitened_.size()) - kParameters; }

 private:
  double rest_, first_;
  std::vector<double> whitened_, sums_from_;
  double constant_squares_ = 0, constant_product_ = 0, squares_ = 0;
};

class AllStrengths {
 public:
  explicit AllStrengths(std::span<const double> levels) {
    for (const double resemblance : kResemblances) each_.emplace_back(levels, resemblance);
  }
  double freedom() const { return each_.front().freedom(); }

  struct At {
    std::array<Whitened::Fit, kCount> fits;
    double largest_t_squared = 0;
  };
  At at(std::size_t place) const {
    At all;
    for (std::size_t i = 0; i < kCount; ++i) {
      all.fits[i] = each_[i].fit(place);
      all.largest_t_squared = std::max(all.largest_t_squared, all.fits[i].t_squared);
    }
    return all;
  }
  std::array<double, kCount> weights(const At& all) const {
    std::array<double, kCount> weights{};
    for (std::size_t i = 0; i < kCount; ++i) weights[i] = each_[i].log_likelihood(all.fits[i]);
    const double top = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (std::size_t i = 0; i < kCount; ++i) sum += weights[i] = prior_of(i) * std::exp(weights[i] - top);
    for (double& weight : weights) weight /= sum;
    return weights;
  }

 private:
  std::vector<Whitened> each_;
};

}  // namespace

LevelShift clearest_shift(std::span<const double> levels, std::size_t least_a_side, double most_chance) {
  LevelShift best{0, 1};
  if (levels.size() < std::max<std::size_t>(2 * least_a_side, 4)) return best;
  const AllStrengths strengths(levels);
  const Student student(strengths.freedom());
  // A mean of chances is no less than the least of them: most places need no more than their t.
  const double least_t = quantile(complement(student, std::min(most_chance, 1.0) / 2));
  for (std::size_t place = least_a_side; place + least_a_side <= levels.size(); ++place) {
    const AllStrengths::At all = strengths.at(place);
    if (all.largest_t_squared < least_t * least_t) continue;
    const auto weights = strengths.weights(all);
    double chance = 0;
    for (std::size_t i = 0; i < kCount; ++i)
      if (weights[i] > kNoWeight) chance += weights[i] * 2 * cdf(complement(student, std::sqrt(all.fits[i].t_squared)));
    if (chance <= most_chance && chance < best.chance) best = {place, chance};
  }
  return best;
}

ShiftSize size_of_shift(std::span<const double> levels, std::size_t at, double confidence) {
  const AllStrengths strengths(levels);
  const Student student(strengths.freedom());
  const AllStrengths::At all = strengths.at(at);
  const auto weights = strengths.weights(all);
  std::array<double, kCount> errors{};
  const double error_t = quantile(complement(student, (1 - confidence) / 2));
  ShiftSize size;
  double low = all.fits[0].step, high = low;
  for (std::size_t i = 0; i < kCount; ++i) {
    const Whitened::Fit& fit = all.fits[i];
    errors[i] = std::sqrt(fit.squares / strengths.freedom() / fit.information);
    size.center += weights[i] * fit.step;
    low = std::min(low, fit.step - error_t * errors[i]), high = std::max(high, fit.step + error_t * errors[i]);
  }
  // The quantile of the mixture lies between those of its parts.
  const auto quantile_of_mixture = [&](double share) {
    double below = low, above = high;
    for (int halvings = 0; halvings < 60; ++halvings) {
      const double middle = (below + above) / 2;
      double mixed = 0;
      for (std::size_t i = 0; i < kCount; ++i)
        mixed += weights[i] * cdf(student, (middle - all.fits[i].step) / errors[i]);
      (mixed < share ? below : above) = middle;
    }
    return (below + above) / 2;
  };
  size.low = quantile_of_mixture((1 - confidence) / 2), size.high = quantile_of_mixture((1 + confidence) / 2);
  return size;
}

}  // namespace assay::host::history
