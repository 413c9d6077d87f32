// By hand, on steps that were measured: how often would a measurement that began anywhere in this series have held the
// true mean in its interval? coverage_test.cpp asks the same of simulated steps.
//
//   ninja -C build/ci assay_coverage_of_series
//   jq '.phases.step.samples_ms[]' results/NAME/latest/cases.jsonl | build/ci/bin/assay_coverage_of_series
//
// Reads the time of one step a line, of a case of many thousand steps (docs/performance.md has the experiment and what
// was found). The true mean is that of the whole series, and, since a machine changes within minutes, also that of the
// `around` measurements' worth of steps about each measurement: an interval speaks of the time in which it was
// measured.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "measure/correlation.hpp"
#include "measure/statistics.hpp"
#include "measure/stopping.hpp"

namespace {

using namespace assay::host::measure;
using Series = std::span<const double>;

constexpr std::size_t around = 20;

double mean_of(Series x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }

// The steps that a measurement takes that begins with the first of `x`; none where they are too few for the plan.
Series measure(const MeasurePlan& plan, Series x) {
  std::size_t taken = 0;
  do {
    taken = static_cast<std::size_t>(next_look(plan, static_cast<std::int64_t>(taken)));
    if (taken > x.size()) return {};
  } while (judge(plan, x.first(taken)) == Verdict::go_on);
  return x.first(taken);
}

void report(const char* name, const MeasurePlan& plan, Series all) {
  const double true_mean = mean_of(all);
  int measured = 0, covers_all = 0, covers_near = 0;
  std::size_t steps = 0;
  for (std::size_t at = 0; at < all.size();) {
    const Series taken = measure(plan, all.subspan(at));
    if (taken.empty()) break;
    const Statistics s = summarize(taken);
    const auto holds = [&](double mean) { return s.ci_low <= mean && mean <= s.ci_high ? 1 : 0; };
    const std::size_t reach = taken.size() * around / 2;
    const std::size_t begin = at > reach ? at - reach : 0;
    covers_all += holds(true_mean);
    covers_near += holds(mean_of(all.subspan(begin, std::min(all.size() - begin, 2 * reach))));
    ++measured;
    steps += taken.size();
    at += taken.size();
  }
  if (measured == 0) return void(std::cout << name << ": too few steps\n");
  std::cout << name << ": " << measured << " measurements of " << steps / static_cast<std::size_t>(measured)
            << " steps on average; the interval holds the mean of the series in " << 100.0 * covers_all / measured
            << "%, that of the steps around it in " << 100.0 * covers_near / measured << "%\n";
}

}  // namespace

int main() {
  const std::vector<double> steps{std::istream_iterator<double>(std::cin), {}};
  if (steps.size() < 1000) return std::cerr << "expected the times of at least 1000 steps, one a line\n", 2;
  const Statistics s = summarize(steps);
  std::cout << steps.size() << " steps, mean " << s.mean << ", cv " << 100 * s.cv << "%, correlation of neighbours "
            << correlation_of(steps).lag1 << '\n';
  MeasurePlan until;
  until.until.emplace();
  report("until 1%", until, steps);
  report("50 steps", {.steps = 50}, steps);
  report("100 steps", {.steps = 100}, steps);
  report("500 steps", {.steps = 500}, steps);
}
