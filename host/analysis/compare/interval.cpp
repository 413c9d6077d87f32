#include "compare/interval.hpp"

#include "compare/groups.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace assay::host::compare {
namespace {

// What remains however many runs a side has (it was another hour, the binary lies elsewhere), as a share of what runs
// differ by at least: 0.2% of 0.5%. `assay ab`, whose sides have the same hours, asks for less of both.
constexpr double kFloorOfGroup = 0.4;
// From so many degrees of freedom on Student's t is as good as normal.
constexpr double kAsGoodAsNormal = 1e6;
// With more runs the t test is as good as exact, and counting the ways to deal them takes seconds.
constexpr std::size_t kMostToDeal = 100;
// A chance above this is no verdict in any comparison, however it is made up.
constexpr double kWorthAsking = 0.2;

// In double throughout. By default Boost computes in long double, which takes many times as long for digits that no
// interval shows.
using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using Normal = boost::math::normal_distribution<double, InDouble>;
using StudentsT = boost::math::students_t_distribution<double, InDouble>;

double variance_of_floors(const TestOptions& options) {
  const double floor = kFloorOfGroup * options.run_to_run;
  return 2 * floor * floor;
}

double t_quantile(double freedom, double confidence) {
  const double p = 0.5 + confidence / 2;
  if (!(freedom < kAsGoodAsNormal)) return boost::math::quantile(Normal(), p);
  return boost::math::quantile(StudentsT(std::max(freedom, 1.0)), p);
}

double beyond(double freedom, double deviations) {
  if (!(freedom < kAsGoodAsNormal)) return 2 * boost::math::cdf(boost::math::complement(Normal(), deviations));
  const StudentsT t(std::max(freedom, 1.0));
  return 2 * boost::math::cdf(boost::math::complement(t, deviations));
}

double mean_of(const std::vector<Located>& runs) {
  double sum = 0;
  for (const Located& run : runs) sum += run.log_value;
  return sum / static_cast<double>(runs.size());
}

std::vector<Located> located(const std::vector<RunFigure>& runs, Statistic statistic, std::size_t steps_each) {
  std::vector<Located> result;
  for (const RunFigure& run : runs) result.push_back(locate(run, statistic, steps_each));
  return result;
}

std::vector<double> levels_of(const std::vector<Located>& runs) {
  std::vector<double> levels;
  for (const Located& run : runs) levels.push_back(run.log_value);
  return levels;
}

// The sides of the runs in the order of time; empty where none of them says it, or all began in one second. Where some
// say it, those of each side are taken to have been made together.
std::vector<bool> order_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b) {
  std::vector<std::pair<double, bool>> runs;
  bool says_all = true, says_any = false;
  for (const auto* side : {&a, &b})
    for (const RunFigure& run : *side) {
      says_all = says_all && run.started_s, says_any = says_any || run.started_s;
      runs.emplace_back(run.started_s.value_or(0), side == &b);
    }
  if (!says_any) return {};
  if (!says_all)
    for (auto& run : runs) run.first = run.second ? 1 : 0;
  std::stable_sort(runs.begin(), runs.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  if (runs.front().first == runs.back().first) return {};
  std::vector<bool> order;
  for (const auto& run : runs) order.push_back(run.second);
  return order;
}

// Both sides, each run by the statistic of as many steps.
struct Pair {
  std::vector<Located> a, b;
  double factor = 1;  // of the measured error: runs near in time are alike
  Pair(const std::vector<RunFigure>& of_a, const std::vector<RunFigure>& of_b, Statistic statistic)
      : a(located(of_a, statistic, fewest_steps(of_a, of_b))), b(located(of_b, statistic, fewest_steps(of_a, of_b))) {
    take_order(of_a, of_b);
  }
  Pair(std::vector<Located> of_a, std::vector<Located> of_b) : a(std::move(of_a)), b(std::move(of_b)) {}
  // Several runs on either side show how much runs differ, also beside a single one.
  bool are_groups() const { return a.size() + b.size() > 2; }
  double center() const { return mean_of(b) - mean_of(a); }
  void take_order(const std::vector<RunFigure>& of_a, const std::vector<RunFigure>& of_b) {
    if (!are_groups()) return;
    if (const std::vector<bool> order = order_of(of_a, of_b); !order.empty()) factor = factor_of_order(order);
  }
};

// The variance of a single run, by its own steps and by what runs are taken to differ.
double trusted_variance(const Located& run, const TestOptions& options) {
  const double assumed = std::max(options.run_to_run, run.restless);
  return run.variance + assumed * assumed;
}

// The variance of one run among several: the least that runs are taken to differ.
double least_variance(const Located& run, const TestOptions& options) {
  const double assumed = std::max(options.run_to_run, run.restless);
  return run.least_variance + assumed * assumed;
}

template <class Variance>
double mean_variance(const std::vector<Located>& runs, const TestOptions& options, const Variance& variance) {
  double sum = 0;
  for (const Located& run : runs) sum += variance(run, options);
  return sum / static_cast<double>(runs.size());
}

double squares_of(const std::vector<Located>& side) {
  const double mean = mean_of(side);
  double squares = 0;
  for (const Located& run : side) squares += (run.log_value - mean) * (run.log_value - mean);
  return squares;
}

// The variance of a run of either side: how far runs of one side lie apart, pooled.
double variance_between(const Pair& pair) {
  return (squares_of(pair.a) + squares_of(pair.b)) / static_cast<double>(pair.a.size() + pair.b.size() - 2);
}

// The variance of a run of this side: what its steps show is the least that runs differ by.
double measured_variance(const std::vector<Located>& side, double between) {
  double within = 0;
  for (const Located& run : side) within += run.least_variance / static_cast<double>(side.size());
  return std::max(between, within);
}

// Each side by its own spread, with degrees of freedom as Welch and Satterthwaite have them; 0 where a side has one
// run.
struct Welch {
  double variance = 0, freedom = 1;
};
Welch welch_of(const Pair& pair) {
  // The pooled variance serves where both sides have as many runs: rounding would decide which of the two is larger.
  if (pair.a.size() < 2 || pair.b.size() < 2 || pair.a.size() == pair.b.size()) return {};
  double variance = 0, per_freedom = 0;
  for (const auto* side : {&pair.a, &pair.b}) {
    const double n = static_cast<double>(side->size());
    const double of_mean = pair.factor * pair.factor * squares_of(*side) / (n - 1) / n;
    variance += of_mean, per_freedom += of_mean * of_mean / (n - 1);
  }
  return {variance, per_freedom > 0 ? std::max(1.0, variance * variance / per_freedom) : 1};
}

// Several runs on a side at least: what runs differ by is measured, and taken to be the same on both. Few runs agree by
// chance, so that they are not trusted more than so many single runs would be.
Interval interval_of_groups(const Pair& pair, const TestOptions& options) {
  const double between = pair.factor * pair.factor * variance_between(pair);
  double measured = variance_of_floors(options), assumed = measured;
  double freedom = static_cast<double>(pair.a.size() + pair.b.size() - 2);
  for (const auto* side : {&pair.a, &pair.b}) {
    measured += measured_variance(*side, between) / static_cast<double>(side->size());
    assumed += mean_variance(*side, options, least_variance) / static_cast<double>(side->size());
  }
  // Where the side of few runs scatters more than the other, the pooled spread is too small for it.
  if (const Welch welch = welch_of(pair); variance_of_floors(options) + welch.variance > measured)
    measured = variance_of_floors(options) + welch.variance, freedom = welch.freedom;
  return {.center = pair.center(),
          .measured_error = std::sqrt(measured),
          .freedom = freedom,
          .assumed_error = std::sqrt(assumed)};
}

// A single run on each side: what runs differ by is assumed; by a percentile more of it where the steps themselves are
// restless.
// Degrees of freedom as Welch and Satterthwaite have them, the assumed part counting as known.
Interval interval_of_single_runs(const Pair& pair, const TestOptions& options) {
  double variance = 0, per_freedom = 0;
  bool known = true;
  for (const auto* side : {&pair.a, &pair.b}) {
    const double share = 1.0 / static_cast<double>(side->size() * side->size());
    for (const Located& run : *side) {
      variance += share * trusted_variance(run, options);
      per_freedom += share * share * run.variance * run.variance / run.freedom;
      known = known && run.spread_known;
    }
  }
  const double freedom = per_freedom > 0 ? variance * variance / per_freedom : INFINITY;
  return {.center = pair.center(), .measured_error = std::sqrt(variance), .freedom = freedom, .known = known};
}

Interval interval_of_pair(const Pair& pair, double states, const TestOptions& options) {
  Interval interval = pair.are_groups() ? interval_of_groups(pair, options) : interval_of_single_runs(pair, options);
  interval.states = states;
  if (states > 0) interval.state_chance = chance_of_two_states(pair.a.size(), pair.b.size());
  interval.a = levels_of(pair.a), interval.b = levels_of(pair.b);
  return interval;
}

bool all_exact(const std::vector<RunFigure>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const RunFigure& run) { return run.exact; });
}

}  // namespace

double Interval::half_by_errors(double confidence) const {
  return std::max(t_quantile(freedom, confidence) * measured_error, t_quantile(INFINITY, confidence) * assumed_error);
}

double Interval::chance_by_errors(double distance) const {
  if (!(distance > 0)) return 1;
  const double measured = measured_error > 0 ? beyond(freedom, distance / measured_error) : 0;
  return std::max(measured, assumed_error > 0 ? beyond(INFINITY, distance / assumed_error) : 0);
}

double Interval::half(double confidence) const {
  const double error = 1 - confidence;
  if (state_chance == 0) return half_by_errors(confidence);
  // Either the states are unlikely enough, or the distance is beyond what they explain.
  const double beyond_states = states + half_by_errors(1 - error / 2);
  return state_chance < error ? std::min(beyond_states, half_by_errors(1 - (error - state_chance))) : beyond_states;
}

double Interval::chance_of(double distance) const {
  const double by_errors = chance_by_errors(distance);
  if (state_chance == 0 || !(by_errors < kWorthAsking)) return by_errors;
  // Where the runs of the sides lie among one another, what dealing them would do is no rarer than two states.
  const bool are_groups = a.size() + b.size() > 2 && a.size() + b.size() <= kMostToDeal;
  const double by_states = are_groups && !are_apart(a, b) ? chance_of_dealing(a, b) : state_chance;
  return std::min(1.0, by_errors + std::min(by_states, chance_by_errors(distance - states)));
}

Interval interval_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic,
                     const TestOptions& options) {
  const Pair pair(a, b, statistic);
  if (all_exact(a) && all_exact(b)) return {.center = pair.center()};
  // Neither a loss nor a count depends on the state of a machine.
  return interval_of_pair(pair, a.front().timed ? std::log1p(options.states) : 0, options);
}

double center_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic) {
  const auto mean = [statistic, steps = fewest_steps(a, b)](const std::vector<RunFigure>& runs) {
    double sum = 0;
    for (const RunFigure& run : runs) sum += locate_alone(run, statistic, steps);
    return sum / static_cast<double>(runs.size());
  };
  return mean(b) - mean(a);
}

Interval interval_of_tails(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b,
                           const TestOptions& options) {
  const auto tails = [steps = fewest_steps(a, b)](const std::vector<RunFigure>& runs) {
    std::vector<Located> result;
    for (const RunFigure& run : runs) result.push_back(locate_tail(run, steps));
    return result;
  };
  Pair pair(tails(a), tails(b));
  pair.take_order(a, b);
  // One hour has more slow steps than another, by nobody knows how many: a run or two a side do not show it.
  return interval_of_pair(pair, options.states > 0 ? INFINITY : 0, options);
}

Scatter scatter_of(const std::vector<RunFigure>& a, const std::vector<RunFigure>& b, Statistic statistic,
                   const TestOptions& options) {
  const Pair pair(a, b, statistic);
  Scatter scatter;
  scatter.runs = std::max(a.size(), b.size());
  scatter.states = a.front().timed ? std::log1p(options.states) : 0;
  scatter.center = pair.center();
  scatter.variance_of_floors = variance_of_floors(options);
  scatter.assumed_variance =
      mean_variance(pair.a, options, least_variance) + mean_variance(pair.b, options, least_variance);
  scatter.measured_variance =
      mean_variance(pair.a, options, trusted_variance) + mean_variance(pair.b, options, trusted_variance);
  if (pair.are_groups()) {
    const double between = variance_between(pair);  // without the factor: more runs are taken in turns
    scatter.measured_variance = measured_variance(pair.a, between) + measured_variance(pair.b, between);
  }
  return scatter;
}

Interval expected_interval(const Scatter& scatter, std::size_t runs) {
  const double n = static_cast<double>(runs);
  return {.center = scatter.center,
          .measured_error = std::sqrt(scatter.measured_variance / n + scatter.variance_of_floors),
          .freedom = 2 * n - 2,
          .assumed_error = std::sqrt(scatter.assumed_variance / n + scatter.variance_of_floors),
          .states = scatter.states,
          .state_chance = scatter.states > 0 ? chance_of_two_states(runs, runs) : 0};
}

}  // namespace assay::host::compare
