// How often does `assay history` find a change where there is none, and how soon does it find one? The tables of
// docs/history.md, in Markdown. Called with the number of series of each kind.
#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "common/parallel.hpp"
#include "history/change_points.hpp"
#include "worlds.hpp"

namespace assay::host::history {
namespace {

constexpr std::size_t kOff = 3;  // runs by which a place may be off

double percent(std::size_t part, std::size_t of) {
  return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

// Of a world without a change.
double false_alarms_percent(const World& world, std::size_t runs, std::size_t series) {
  std::vector<char> has_change(series);
  for_each_in_parallel(series, [&](std::size_t i) {
    has_change[i] = !find_changes(levels_of(world, runs, static_cast<unsigned>(i)), {}).empty();
  });
  std::size_t count = 0;
  for (const char one : has_change) count += one ? 1 : 0;
  return percent(count, series);
}

struct Step {
  World world;
  std::size_t before = 40, after = 3;
  double by = 0.05;
};
struct Found {
  double share_percent = 0, held_percent = 0;  // held: the interval holds the true ratio
  std::size_t others = 0;                      // changes elsewhere
};
Found found_of(const Step& step, std::size_t series) {
  std::vector<std::vector<ChangePoint>> changes(series);
  for_each_in_parallel(series, [&](std::size_t i) {
    const auto levels = levels_of(step.world, step.before + step.after, static_cast<unsigned>(i));
    changes[i] = find_changes(with_step(levels, step.before, step.by), {});
  });
  std::size_t found = 0, held = 0, others = 0;
  for (const std::vector<ChangePoint>& of_one : changes) {
    std::optional<ChangePoint> near;
    for (const ChangePoint& change : of_one)
      if (!near && change.at + kOff >= step.before && change.at <= step.before + kOff)
        near = change;
      else
        ++others;
    if (near) ++found, held += near->low <= 1 + step.by && 1 + step.by <= near->high ? 1 : 0;
  }
  return {percent(found, series), percent(held, found), others};
}

void print_false_alarms(std::size_t series) {
  const std::vector<std::size_t> lengths{20, 40, 100, 200};
  fmt::print("| runs without a change | {} |\n| --- |{}\n", "20 runs | 40 runs | 100 runs | 200 runs",
             " ---: | ---: | ---: | ---: |");
  std::vector<World> worlds = worlds_without_change();
  worlds.push_back({.name = "two modes 8% apart that stay for some 10 runs, 0.3%",
                    .deviation = 0.003,
                    .slow_share = 0.5,
                    .slow_by = 0.08,
                    .stays = 0.8});
  for (const World& world : worlds) {
    fmt::print("| {} |", world.name);
    for (const std::size_t runs : lengths) fmt::print(" {:.1f}% |", false_alarms_percent(world, runs, series));
    fmt::print("\n");
  }
}

void print_found(std::size_t series) {
  const World quiet{.name = "independent, 0.3%", .deviation = 0.003}, usual{.name = "independent, 1%"},
      alike{.name = "AR(0.8), 1%", .resemblance = 0.8}, wandering{.name = "AR(0.95), 1%", .resemblance = 0.95},
      slow{.name = "15% of runs 10% slow, 1%", .slow_share = 0.15, .slow_by = 0.1},
      modes{.name = "two modes 8% apart, 1%", .slow_share = 0.5, .slow_by = 0.08};
  std::vector<Step> steps;
  for (const World& world : {quiet, usual})
    for (const std::size_t before : {20, 30, 40}) {
      steps.push_back({world, before, 3, 0.05});
      steps.push_back({world, before, 8, 0.02});
    }
  for (const World& world : {usual, alike, wandering}) steps.push_back({world, 40, 20, 0.02});
  for (const World& world : {alike, wandering, slow, modes})
    for (const double by : {0.05, 0.1, 0.2}) steps.push_back({world, 40, by > 0.05 ? 8u : 3u, by});
  fmt::print("\n| noise | runs before | runs after | step | found | interval holds it | other changes |\n");
  fmt::print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Step& step : steps) {
    const Found found = found_of(step, series);
    fmt::print("| {} | {} | {} | {:.0f}% | {:.1f}% | {:.1f}% | {} |\n", step.world.name, step.before, step.after,
               100 * step.by, found.share_percent, found.held_percent, found.others);
  }
}

}  // namespace
}  // namespace assay::host::history

int main(int count, char** values) {
  const long series = count > 1 ? std::strtol(values[1], nullptr, 10) : 400;
  if (series < 1) {
    fmt::print(stderr, "history_study is called with the number of series, 1 or more\n");
    return 2;
  }
  fmt::print("{} series of each kind.\n\n", series);
  assay::host::history::print_false_alarms(static_cast<std::size_t>(series));
  assay::host::history::print_found(static_cast<std::size_t>(series));
  return 0;
}
