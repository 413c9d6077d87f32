#include "timed_choice.hpp"

#include <algorithm>
#include <limits>

namespace assay::cpu {
namespace {

// A candidate whose best is this much above the best of all has lost: no quiet round will make it the winner.
constexpr double hopeless = 1.3;
constexpr std::size_t rounds_before_leaving = 2;

struct Entry {
  std::size_t candidate;
  std::vector<double> seconds;  // of undisturbed rounds

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  double figure() const { return lower_quartile(seconds); }
  bool is_steady(const ChoiceLimits& limits) const {
    return seconds.size() >= static_cast<std::size_t>(limits.rounds_least) &&
           figure() <= best() * (1.0 + limits.steady_margin);
  }
};

}  // namespace

double lower_quartile(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 4);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

bool agree(const TimedChoice& one, const TimedChoice& other, const ChoiceLimits& limits) {
  const double most = 1.0 + 2.0 * limits.steady_margin;
  return one.is_steady && other.is_steady && one.candidate == other.candidate && one.seconds <= other.seconds * most &&
         other.seconds <= one.seconds * most;
}

TimedChoice choose_by_time(std::size_t count, const std::function<std::optional<TimedRun>(std::size_t)>& time,
                           const ChoiceLimits& limits) {
  TimedChoice choice;
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<TimedRun> first_run = time(i);
    if (!first_run) continue;
    choice.spent_seconds += first_run->seconds;
    entries.push_back({i, {}});
  }
  choice.measured = entries.size();
  if (entries.empty() || entries.front().candidate != 0) return choice;

  const auto is_steady = [&] {
    return std::all_of(entries.begin(), entries.end(), [&](const Entry& e) { return e.is_steady(limits); });
  };
  for (int round = 0; round < limits.rounds_most && !is_steady(); ++round) {
    if (round >= limits.rounds_least && choice.spent_seconds > limits.seconds) break;
    // There and back, so that none always follows the same one.
    for (std::size_t turn = 0; turn < entries.size(); ++turn) {
      Entry& entry = entries[round % 2 == 0 ? turn : entries.size() - 1 - turn];
      const std::optional<TimedRun> run = time(entry.candidate);
      if (!run) return choice;  // what ran a moment ago does not: nothing is known of it
      choice.spent_seconds += run->seconds;
      if (!run->is_disturbed) entry.seconds.push_back(run->seconds);
    }
    double best = std::numeric_limits<double>::infinity();
    for (const Entry& e : entries)
      if (!e.seconds.empty()) best = std::min(best, e.best());
    std::erase_if(entries, [&](const Entry& e) {
      return e.candidate != 0 && e.seconds.size() >= rounds_before_leaving && e.best() > best * hopeless;
    });
  }

  // A candidate lost in noise is no rival, but the first one must be known to be compared with.
  std::erase_if(entries, [&](const Entry& e) { return e.candidate != 0 && !e.is_steady(limits); });
  if (!entries.front().is_steady(limits)) return choice;
  auto chosen = std::min_element(entries.begin(), entries.end(),
                                 [](const Entry& x, const Entry& y) { return x.figure() < y.figure(); });
  if (chosen->figure() > entries.front().figure() * (1.0 - limits.clear_gain)) chosen = entries.begin();
  choice.is_steady = true;
  choice.candidate = chosen->candidate;
  choice.seconds = chosen->figure();
  return choice;
}

}  // namespace assay::cpu
