#include "history/change_points.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>

#include "history/level_shift.hpp"

namespace assay::host::history {
namespace {

struct Stretch {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// A part of a stretch in which a change is looked for. `looks`: so many times the chance found there counts.
struct Part {
  Stretch place;
  double looks = 1;
};

// A shorter part does not show how much its levels resemble each other.
constexpr double kShortestPart = 10;
// The whole stretch has this part of the error that may be made; its parts have the rest.
constexpr double kShareOfWhole = 0.8;
// The chance of a shift is that at one place, given how strong resemblances may be. That of the clearest of n places is
// up to so many times n as large, as simulated for strengths from 0 to 0.99 and 12 to 200 levels.
constexpr double kPlacesAreWorth = 2.5;
// What exchanged runs may err by, of the whole error: the two ideas have to hold both, and each one keeps the error
// in its own worlds.
constexpr double kShareOfExchanges = 0.4;
constexpr std::uint64_t kSeed = 20140301;

// The whole stretch, and parts of it of lengths that shrink by the square root of two, each half over the one before
// (seeded binary segmentation): two changes that cancel each other in the whole do not in some part.
std::vector<Part> parts_of(Stretch s) {
  std::vector<std::vector<Stretch>> scales;
  for (double length = static_cast<double>(s.size()) / std::sqrt(2.0); length >= kShortestPart;
       length /= std::sqrt(2.0)) {
    const auto whole = static_cast<std::size_t>(std::ceil(length));
    std::vector<Stretch> scale;
    for (std::size_t begin = s.begin; begin + whole < s.end; begin += std::max<std::size_t>(1, whole / 2))
      scale.push_back({begin, begin + whole});
    scale.push_back({s.end - whole, s.end});  // the newest runs, of each length
    scales.push_back(std::move(scale));
  }
  std::vector<Part> parts{{s, scales.empty() ? 1 : 1 / kShareOfWhole}};
  for (const std::vector<Stretch>& scale : scales)
    for (const Stretch part : scale)
      parts.push_back({part, static_cast<double>(scales.size() * scale.size()) / (1 - kShareOfWhole)});
  return parts;
}

// A run that differs from the one before and the one after, by more than runs differ, is an accident. Two of them
// beside each other are no accidents if they agree. Returns the places of the others.
std::vector<std::size_t> without_accidents(std::span<const double> levels, double least_distance) {
  constexpr double times_usual = 5;
  std::vector<double> jumps;
  for (std::size_t i = 1; i < levels.size(); ++i) jumps.push_back(std::abs(levels[i] - levels[i - 1]));
  double far = least_distance;
  if (!jumps.empty()) {
    const auto middle = jumps.begin() + static_cast<std::ptrdiff_t>(jumps.size() / 2);
    std::nth_element(jumps.begin(), middle, jumps.end());
    far = std::max(far, times_usual * *middle);
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool far_from_before = i == 0 || std::abs(levels[i] - levels[i - 1]) > far;
    const bool far_from_after = i + 1 == levels.size() || std::abs(levels[i + 1] - levels[i]) > far;
    if (!far_from_before || !far_from_after) kept.push_back(i);
  }
  return kept;
}

std::vector<double> at_places(std::span<const double> levels, const std::vector<std::size_t>& places) {
  std::vector<double> kept;
  for (const std::size_t place : places) kept.push_back(levels[place]);
  return kept;
}

double mean_of(std::span<const double> levels) {
  double sum = 0;
  for (const double level : levels) sum += level;
  return sum / static_cast<double>(levels.size());
}

// How much two means differ, squared, in units of what single runs do: the largest over all places of all parts.
double largest_contrast(std::span<const double> levels, const std::vector<Part>& parts, std::vector<double>& sums) {
  sums.assign(levels.size() + 1, 0);
  for (std::size_t i = 0; i < levels.size(); ++i) sums[i + 1] = sums[i] + levels[i];
  double largest = 0;
  for (const Part& part : parts) {
    const auto [begin, end] = part.place;
    const double n = static_cast<double>(part.place.size()), mean = (sums[end] - sums[begin]) / n;
    for (std::size_t at = begin + least_runs_a_side; at + least_runs_a_side <= end; ++at) {
      const double left = static_cast<double>(at - begin);
      const double excess = sums[at] - sums[begin] - mean * left;
      largest = std::max(largest, excess * excess * n / (left * (n - left)));
    }
  }
  return largest;
}

// How often runs in any other order, less their accidents, have such a contrast.
class Exchanges {
 public:
  Exchanges(std::span<const double> runs, double least_distance)
      : runs_(runs.begin(), runs.end()), least_distance_(least_distance) {}

  bool are_rarely_above(double contrast, double most_chance) {
    // Ten of them above it are enough to separate 1 from 2 in a thousand; of long series fewer, whose tail is
    // estimated.
    constexpr double above_to_tell = 10, most_orders = 20000, most_work = 2e7;
    const double work_of_one = static_cast<double>(std::max<std::size_t>(1, runs_.size())) * 2 * 8;
    const double orders =
        std::min({above_to_tell / most_chance, most_orders, std::max(100.0, most_work / work_of_one)});
    double above = 0;
    for (double drawn = 1; drawn <= orders; ++drawn) {
      const double found = contrast_of_another_order();
      above += found >= contrast * (1 - 1e-9) ? 1 : 0;
      largest_.push_back(std::sqrt(found));
      if ((above + 1) / (orders + 1) > most_chance && above > 0) return false;
      // Far beyond all of them: what more of them would say is known.
      if (drawn == 50 && above == 0 && chance_by_tail(std::sqrt(contrast)) < most_chance / 100) return true;
    }
    return above > 0 || 1 / (orders + 1) <= most_chance || chance_by_tail(std::sqrt(contrast)) <= most_chance;
  }

 private:
  double contrast_of_another_order() {
    for (std::size_t i = runs_.size(); i > 1; --i) std::swap(runs_[i - 1], runs_[random_() % i]);
    const std::vector<double> kept = at_places(runs_, without_accidents(runs_, least_distance_));
    if (kept.size() < 2 * least_runs_a_side) return 0;
    const auto [parts, is_new] = parts_.try_emplace(kept.size());
    if (is_new) parts->second = parts_of({0, kept.size()});
    return largest_contrast(kept, parts->second, sums_);
  }

  // The tail of a Gumbel distribution with the mean and deviation of the contrasts that were drawn.
  double chance_by_tail(double contrast) const {
    constexpr double euler = 0.5772156649, pi_by_root_6 = 1.2825498302;
    const double mean = mean_of(largest_);
    double squares = 0;
    for (const double x : largest_) squares += (x - mean) * (x - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(largest_.size() - 1));
    if (!(deviation > 0)) return contrast > mean ? 0 : 1;
    return -std::expm1(-std::exp(-(pi_by_root_6 * (contrast - mean) / deviation + euler)));
  }

  std::vector<double> runs_;
  double least_distance_;
  std::mt19937_64 random_{kSeed};
  std::map<std::size_t, std::vector<Part>> parts_;
  std::vector<double> sums_, largest_;
};

struct Candidate {
  std::size_t at = 0;
  double chance = 1, contrast = 0;
};

class Search {
 public:
  Search(const std::vector<double>& runs, const ChangeOptions& options)
      : runs_(runs), options_(options), least_distance_(std::log1p(options.threshold)) {
    kept_ = without_accidents(runs, least_distance_);
    levels_ = at_places(runs, kept_);
  }

  std::vector<ChangePoint> found() {
    look({0, levels_.size()});
    std::sort(places_.begin(), places_.end());
    for (;;) {
      std::vector<ChangePoint> changes;
      for (std::size_t i = 0; i < places_.size(); ++i) changes.push_back(change_at(i));
      // Between its neighbours a change may be less than it seemed, where one of them stood for a part of it.
      const auto least = std::min_element(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
        return std::abs(std::log(a.ratio)) < std::abs(std::log(b.ratio));
      });
      if (least == changes.end() || std::abs(std::log(least->ratio)) > least_distance_) return changes;
      places_.erase(places_.begin() + (least - changes.begin()));
    }
  }

 private:
  std::span<const double> of(Stretch s) const { return std::span(levels_).subspan(s.begin, s.size()); }
  double error() const { return (1 - options_.confidence) * options_.share; }

  std::vector<Candidate> candidates_in(Stretch s) const {
    std::vector<Candidate> all;
    for (const Part& part : parts_of(s)) {
      const auto [begin, end] = part.place;
      const double times = part.looks * kPlacesAreWorth * static_cast<double>(part.place.size());
      const LevelShift shift = clearest_shift(of(part.place), least_runs_a_side, error() / times);
      if (shift.at == 0) continue;
      const std::size_t at = begin + shift.at;
      if (std::abs(mean_of(of({at, end})) - mean_of(of({begin, at}))) <= least_distance_) continue;
      all.push_back(nearest_best({at, shift.chance * times}, part.place));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.chance < b.chance; });
    return all;
  }

  double contrast_at(std::size_t at, Stretch s) const {
    const double distance = mean_of(of({at, s.end})) - mean_of(of({s.begin, at}));
    const double left = static_cast<double>(at - s.begin), right = static_cast<double>(s.end - at);
    return distance * distance * left * right / (left + right);
  }

  // Moved by some runs to where the means differ most: where a part holds further changes, the clearest place is that
  // of the largest single jump.
  Candidate nearest_best(Candidate c, Stretch s) const {
    constexpr std::size_t some = 3;
    const std::size_t first = std::max(s.begin + least_runs_a_side, c.at - std::min(c.at, some)),
                      last = std::min(s.end - least_runs_a_side, c.at + some);
    c.contrast = contrast_at(c.at, s);
    for (std::size_t at = first; at <= last; ++at)
      if (const double contrast = contrast_at(at, s); contrast > c.contrast) c.at = at, c.contrast = contrast;
    return c;
  }

  // The clearest place that holds, and then what is left and right of it.
  void look(Stretch s) {
    if (s.size() < 2 * least_runs_a_side) return;
    std::vector<std::size_t> refused;
    // With the accidents among them.
    const std::span<const double> runs =
        std::span(runs_).subspan(kept_[s.begin], kept_[s.end - 1] + 1 - kept_[s.begin]);
    for (const Candidate& c : candidates_in(s)) {
      if (std::find(refused.begin(), refused.end(), c.at) != refused.end()) continue;
      if (!Exchanges(runs, least_distance_).are_rarely_above(c.contrast, error() * kShareOfExchanges)) {
        refused.push_back(c.at);
        constexpr std::size_t most_refused = 3;
        if (refused.size() == most_refused) return;
        continue;
      }
      places_.push_back(c.at);
      look({s.begin, c.at});
      look({c.at, s.end});
      return;
    }
  }

  ChangePoint change_at(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : places_[i - 1],
                      end = i + 1 < places_.size() ? places_[i + 1] : levels_.size();
    const ShiftSize size = size_of_shift(of({begin, end}), places_[i] - begin, options_.confidence);
    return {kept_[places_[i]],
            kept_[places_[i] - 1],
            size.center > 0 ? compare::Outcome::higher : compare::Outcome::lower,
            std::exp(size.center),
            std::exp(size.low),
            std::exp(size.high)};
  }

  const std::vector<double>& runs_;
  const ChangeOptions& options_;
  double least_distance_;
  std::vector<std::size_t> kept_;  // the runs that are no accidents
  std::vector<double> levels_;     // of these
  std::vector<std::size_t> places_;
};

}  // namespace

std::vector<ChangePoint> find_changes(const std::vector<double>& levels, const ChangeOptions& options) {
  if (levels.size() < 2 * least_runs_a_side) return {};
  return Search(levels, options).found();
}

std::vector<std::vector<ChangePoint>> find_changes(const std::vector<std::vector<double>>& series,
                                                   const ChangeOptions& options) {
  std::vector<std::vector<ChangePoint>> found(series.size());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < series.size(); ++i)
    if (series[i].size() >= 2 * least_runs_a_side) left.push_back(i);
  const double all = static_cast<double>(left.size());
  // As if all had changed, then as if those had that are left, until none goes.
  for (;;) {
    ChangeOptions shared = options;
    shared.share = options.share * static_cast<double>(left.size()) / std::max(1.0, all);
    std::vector<std::size_t> changed;
    for (const std::size_t i : left) {
      found[i] = find_changes(series[i], shared);
      if (!found[i].empty()) changed.push_back(i);
    }
    if (changed.size() == left.size() || changed.empty()) return found;
    left = std::move(changed);
  }
}

}  // namespace assay::host::history
