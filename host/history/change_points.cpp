#include "history/change_points.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "compare/location.hpp"

namespace assay::host::history {
namespace {

using compare::RunFigure;

struct Stretch {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// A place where the figure may have changed, seen within a stretch.
struct Candidate {
  Stretch within;
  std::size_t at = 0;
  double distance = 0;  // of the means, in logarithms
  double weight = 0;    // the distance in units of what chance would do with one run's scatter
};

class Search {
 public:
  Search(const std::vector<RunFigure>& runs, const ChangeOptions& options) : runs_(runs), options_(options) {
    sums_.push_back(0);
    for (const RunFigure& run : runs)
      sums_.push_back(sums_.back() + compare::locate(run, options.test.statistic).log_value);
    // By Bonferroni: over the places of a change, in all series.
    const double places =
        static_cast<double>(std::max<std::size_t>(1, runs.size() - 1) * std::max<std::size_t>(1, options.series));
    confidence_ = 1 - (1 - options.test.confidence) / places;
  }

  std::vector<ChangePoint> found() {
    look({0, runs_.size()});
    std::sort(places_.begin(), places_.end());
    settle();
    std::vector<ChangePoint> changes;
    for (std::size_t i = 0; i < places_.size(); ++i)
      changes.push_back({places_[i], verdict_at(i, options_.test.confidence)});
    return changes;
  }

 private:
  double mean(Stretch s) const { return (sums_[s.end] - sums_[s.begin]) / static_cast<double>(s.size()); }

  std::optional<Candidate> best_in(Stretch s) const {
    if (s.size() < 2 * least_runs_a_side) return std::nullopt;
    Candidate best;
    for (std::size_t at = s.begin + least_runs_a_side; at + least_runs_a_side <= s.end; ++at) {
      const double distance = std::abs(mean({at, s.end}) - mean({s.begin, at}));
      const double left = static_cast<double>(at - s.begin), right = static_cast<double>(s.end - at);
      const double weight = distance * std::sqrt(left * right / (left + right));
      if (weight > best.weight) best = {s, at, distance, weight};
    }
    return best.weight > 0 ? std::optional(best) : std::nullopt;
  }

  // The whole stretch, and parts of it of lengths that shrink by the square root of two, each half over the one before:
  // two changes that cancel each other in the whole do not in some part.
  std::vector<Candidate> candidates_in(Stretch s) const {
    std::vector<Candidate> all;
    for (double length = static_cast<double>(s.size()); length >= 2.0 * least_runs_a_side; length /= std::sqrt(2.0)) {
      const auto whole = static_cast<std::size_t>(std::ceil(length));
      const std::size_t stride = std::max<std::size_t>(1, whole / 2);
      for (std::size_t begin = s.begin; begin < s.end; begin += stride) {
        const Stretch part{begin, std::min(begin + whole, s.end)};
        if (const auto best = best_in(part); best && best->distance > std::log1p(options_.test.threshold))
          all.push_back(*best);
        if (part.end == s.end) break;
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.weight > b.weight; });
    return all;
  }

  compare::TestResult compared(Stretch before, Stretch after, double confidence) const {
    const auto side = [this](const char* label, Stretch s) {
      const auto at = [this](std::size_t i) { return runs_.begin() + static_cast<std::ptrdiff_t>(i); };
      return compare::TestedSide{label, {at(s.begin), at(s.end)}};
    };
    compare::TestOptions test = options_.test;
    test.confidence = confidence;
    return compare::compare_figures(side("before", before), side("after", after), test);
  }

  bool differ(Stretch before, Stretch after) const {
    const compare::Outcome outcome = compared(before, after, confidence_).outcome;
    return outcome == compare::Outcome::lower || outcome == compare::Outcome::higher;
  }

  // The heaviest place that holds, and then what is left and right of it.
  void look(Stretch s) {
    // One that was refused is not asked about again in another part.
    std::vector<std::size_t> refused;
    for (const Candidate& c : candidates_in(s)) {
      if (std::find(refused.begin(), refused.end(), c.at) != refused.end()) continue;
      if (!differ({c.within.begin, c.at}, {c.at, c.within.end})) {
        refused.push_back(c.at);
        continue;
      }
      places_.push_back(c.at);
      look({s.begin, c.at});
      look({c.at, s.end});
      return;
    }
  }

  Stretch before(std::size_t i) const { return {i == 0 ? 0 : places_[i - 1], places_[i]}; }
  Stretch after(std::size_t i) const { return {places_[i], i + 1 < places_.size() ? places_[i + 1] : runs_.size()}; }
  compare::TestResult verdict_at(std::size_t i, double confidence) const {
    return compared(before(i), after(i), confidence);
  }

  // Each place is moved to where its neighbours leave it best, and one that does not hold between them goes, the
  // lightest first.
  void settle() {
    for (bool is_settled = false; !is_settled;) {
      is_settled = true;
      for (std::size_t i = 0; i < places_.size(); ++i) {
        const auto best = best_in({before(i).begin, after(i).end});
        if (best) places_[i] = best->at;
      }
      std::optional<std::size_t> lightest;
      double least = 0;
      for (std::size_t i = 0; i < places_.size(); ++i) {
        if (differ(before(i), after(i))) continue;
        const double distance = std::abs(mean(after(i)) - mean(before(i)));
        if (!lightest || distance < least) lightest = i, least = distance;
      }
      if (!lightest) return;
      places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(*lightest));
      is_settled = places_.empty();
    }
  }

  const std::vector<RunFigure>& runs_;
  const ChangeOptions& options_;
  double confidence_ = 0.95;
  std::vector<double> sums_;
  std::vector<std::size_t> places_;
};

// Runs that are otherwise than the one before and the one after, by more than runs differ: accidents. Two of them
// beside each other are none, if they agree.
std::vector<std::size_t> without_accidents(const std::vector<RunFigure>& runs, const compare::TestOptions& test) {
  constexpr double times_usual = 5;
  std::vector<double> logs, jumps;
  for (const RunFigure& run : runs) logs.push_back(compare::locate(run, test.statistic).log_value);
  for (std::size_t i = 1; i < logs.size(); ++i) jumps.push_back(std::abs(logs[i] - logs[i - 1]));
  const auto middle = jumps.begin() + static_cast<std::ptrdiff_t>(jumps.size() / 2);
  std::nth_element(jumps.begin(), middle, jumps.end());
  const double far = std::max(std::log1p(test.threshold), times_usual * *middle);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const bool far_from_before = i == 0 || std::abs(logs[i] - logs[i - 1]) > far;
    const bool far_from_after = i + 1 == logs.size() || std::abs(logs[i + 1] - logs[i]) > far;
    if (!far_from_before || !far_from_after) kept.push_back(i);
  }
  return kept;
}

}  // namespace

std::vector<ChangePoint> find_changes(const std::vector<RunFigure>& runs, const ChangeOptions& options) {
  if (runs.size() < 2 * least_runs_a_side) return {};
  const std::vector<std::size_t> places = without_accidents(runs, options.test);
  if (places.size() < 2 * least_runs_a_side) return {};
  std::vector<RunFigure> kept;
  for (const std::size_t place : places) kept.push_back(runs[place]);
  std::vector<ChangePoint> changes = Search(kept, options).found();
  for (ChangePoint& change : changes) change.at = places[change.at];
  return changes;
}

}  // namespace assay::host::history
