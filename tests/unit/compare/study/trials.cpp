#include "trials.hpp"

#include "ab/session.hpp"
#include "compare/family.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace assay::host::compare::study {
namespace {

// A separate seed for each trial, whatever order they are played in (FNV-1a, and the last step of SplitMix64).
std::uint64_t seed_of(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash += (seed + 1) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

bool is_a_longer(std::uint64_t seed) { return seed % 2 == 1; }

std::vector<double> times(std::vector<double> steps, double factor) {
  for (double& ms : steps) ms *= factor;
  return steps;
}

using RunStatesOfSides = std::array<std::vector<RunState>, 2>;

RunStatesOfSides states_of(const World& world, std::size_t runs, std::uint64_t seed) {
  RunStates states(world, seed);
  RunStatesOfSides sides;
  for (std::size_t turn = 0; turn < 2 * runs; ++turn)
    sides[world.in_blocks ? turn / runs : turn % 2].push_back(states.next());
  return sides;
}

std::array<TestedSide, 2> play_sides(const World& world, std::size_t steps, double change,
                                     const RunStatesOfSides& states, std::uint64_t seed, Random& random) {
  std::array<TestedSide, 2> sides{TestedSide{"A", {}}, TestedSide{"B", {}}};
  for (std::size_t side = 0; side < 2; ++side) {
    const bool is_longer = (side == 0) == is_a_longer(seed);
    for (std::size_t run = 0; run < states[side].size(); ++run) {
      const std::vector<double> of_run = steps_of(world, states[side][run], steps, random);
      RunFigure& figure = sides[side].runs.emplace_back(figure_of(times(of_run, is_longer ? 1 + change : 1.0)));
      const std::size_t turn = world.in_blocks ? side * states[side].size() + run : 2 * run + side;
      figure.started_s = 60.0 * static_cast<double>(turn);
    }
  }
  return sides;
}

// An entry as compare_sides() makes it of a verdict, as far as the cases beside it matter.
Comparison comparison_of(const std::vector<TestResult>& results) {
  Comparison comparison;
  comparison.metrics.emplace_back();
  for (const TestResult& result : results) {
    Entry baseline, entry;
    baseline.kind = Entry::Kind::baseline, baseline.runs = result.runs_a;
    entry.kind = Entry::Kind::compared, entry.runs = result.runs_b;
    entry.ratio = result.ratio, entry.low = result.low, entry.high = result.high;
    entry.outcome = result.outcome, entry.worse = result.outcome == Outcome::higher;
    entry.chance = result.chance, entry.scatter = result.scatter;
    ComparedCase& c = comparison.metrics.front().cases.emplace_back();
    c.entries = {std::move(baseline), std::move(entry)};
  }
  return comparison;
}

// As the comparison of all of them has it.
std::vector<Outcome> outcomes_of(const std::vector<TestResult>& results, const TestOptions& options) {
  Comparison comparison = comparison_of(results);
  control_family(comparison, options);
  std::vector<Outcome> outcomes;
  for (const ComparedCase& c : comparison.metrics.front().cases) outcomes.push_back(c.entries.at(1).outcome);
  return outcomes;
}

Outcome outcome_of(const TestedSide& a, const TestedSide& b, const TestOptions& options) {
  return outcomes_of({compare_figures(a, b, options)}, options).front();
}

}  // namespace

std::string Design::name() const { return fmt::format("{}x{}", runs, steps); }

RunFigure figure_of(std::vector<double> step_ms) {
  RunFigure figure;
  const double n = static_cast<double>(step_ms.size());
  for (const double ms : step_ms) figure.mean += ms / n;
  double squares = 0;
  for (const double ms : step_ms) squares += (ms - figure.mean) * (ms - figure.mean);
  figure.std = std::sqrt(squares / (n - 1));
  figure.n = step_ms.size();
  figure.samples = std::move(step_ms);
  figure.timed = true;
  return figure;
}

Ending ending_of(Outcome outcome, std::uint64_t seed) {
  switch (outcome) {
    case Outcome::same: return Ending::same;
    case Outcome::cannot_tell: return Ending::cannot_tell;
    case Outcome::higher: return is_a_longer(seed) ? Ending::wrong : Ending::right;
    case Outcome::lower: return is_a_longer(seed) ? Ending::right : Ending::wrong;
    default: return Ending::other;
  }
}

Ending play_verdict(const World& world, const Design& design, double change, std::uint64_t seed,
                    const TestOptions& options) {
  Random random(seed_of(world.name + " " + design.name(), seed));
  const RunStatesOfSides states = states_of(world, design.runs, seed_of(world.name + " runs " + design.name(), seed));
  const auto [a, b] = play_sides(world, design.steps, change, states, seed, random);
  return ending_of(outcome_of(a, b, options), seed);
}

std::size_t play_family(const World& world, const Design& design, std::size_t cases, StateOf state, std::uint64_t seed,
                        const TestOptions& options) {
  Random random(seed_of(world.name + " cases " + design.name(), seed));
  std::vector<TestResult> results;
  for (std::size_t c = 0; c < cases; ++c) {
    const std::string of = state == StateOf::run ? "all" : std::to_string(c);
    const auto states = states_of(world, design.runs, seed_of(world.name + " runs of " + of + design.name(), seed));
    const auto [a, b] = play_sides(world, design.steps, 0, states, seed, random);
    results.push_back(compare_figures(a, b, options));
  }
  std::size_t claims = 0;
  for (const Outcome outcome : outcomes_of(results, options))
    claims += outcome != Outcome::same && outcome != Outcome::cannot_tell;
  return claims;
}

SessionEnding play_session(const World& world, std::size_t steps, double change, std::uint64_t seed,
                           const TestOptions& options) {
  Random random(seed_of(world.name + " ab", seed));
  RunStates states(world, seed_of(world.name + " ab runs", seed));
  std::array<TestedSide, 2> sides{TestedSide{"A", {}}, TestedSide{"B", {}}};
  ab::SessionPlan plan;
  // Only a look's comparison matters: the others, which take most of the time, are left out.
  ab::Looks looks(plan.looks);
  Outcome last = Outcome::cannot_tell;
  ab::SessionParts parts;
  parts.run = [&](std::size_t side, std::int64_t) {
    const bool is_longer = (side == 0) == is_a_longer(seed);
    sides[side].runs.push_back(
        figure_of(times(steps_of(world, states.next(), steps, random), is_longer ? 1 + change : 1.0)));
    return ab::TurnEnd{};
  };
  parts.compare = [&](double confidence) {
    const auto runs = static_cast<std::int64_t>(sides[0].runs.size());
    if (!looks.is_due(runs)) {
      TestResult open;
      open.runs_a = open.runs_b = sides[0].runs.size();
      return comparison_of({open});
    }
    looks.looked(runs);
    TestOptions at_look = options;
    at_look.confidence = confidence;
    Comparison comparison = comparison_of({compare_figures(sides[0], sides[1], at_look)});
    control_family(comparison, at_look);
    last = comparison.metrics.front().cases.front().entries.at(1).outcome;
    return comparison;
  };
  parts.seconds = [] { return 0.0; };
  parts.report = [](const ab::Round&) {};
  const ab::SessionResult result = ab::run_session(plan, parts);
  return {ending_of(last, seed), static_cast<std::size_t>(result.runs)};
}

Outcome play_tail(const TailRow& row, const Design& design, std::uint64_t seed, const TestOptions& options) {
  constexpr double kStepMs = 10;
  const World quiet{.name = "quiet", .noise = 0.002};
  const World slow{
      .name = row.name, .noise = 0.002, .slow_share = row.slow_share, .slow_factor = row.slow_ms / row.step_ms};
  Random random(seed_of(std::string(row.name) + " " + design.name(), seed));
  TestedSide a{"A", {}}, b{"B", {}};
  for (std::size_t run = 0; run < design.runs; ++run) {
    a.runs.push_back(figure_of(steps_of(quiet, {}, design.steps, random)));
    b.runs.push_back(figure_of(times(steps_of(slow, {}, design.steps, random), row.step_ms / kStepMs)));
  }
  return outcome_of(a, b, options);
}

}  // namespace assay::host::compare::study
