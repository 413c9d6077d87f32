// compare_study: how often the verdicts of compare and ab are wrong on machines that are played, and what they find.
// Prints one JSON object; `scripts/study_compare worlds` makes tables of it.
#include "compare/metric.hpp"
#include "trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace assay::host::compare::study {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kConfidenceOfAb = 0.99, kRunToRunOfAb = 0.001;
constexpr std::size_t kCases = 100, kStepsOfAb = 50;

struct Options {
  std::uint64_t seeds = 200, family_seeds = 100, tail_seeds = 60;
  std::vector<std::string> world_names;
  std::vector<Design> designs{{1, 5}, {1, 50}, {2, 50}, {3, 20}, {3, 50}, {5, 50}, {10, 50}};
  std::vector<Design> family_designs{{1, 50}, {3, 20}, {3, 50}, {10, 50}};
  std::vector<double> changes{0, 0.01, 0.02, 0.03, 0.05};
  std::vector<double> ab_thresholds{0.02, 0.005};
  TestOptions test;
  std::vector<std::string> only{"verdicts", "families", "ab", "tails"};
  std::size_t jobs = std::max(1u, std::thread::hardware_concurrency());
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

Design design_of(const std::string& text) {
  Design design;
  char end = 0;
  if (std::sscanf(text.c_str(), "%zux%zu%c", &design.runs, &design.steps, &end) != 2 || design.runs < 1 ||
      design.steps < 2)
    throw std::invalid_argument(fmt::format("--designs: '{}' is no RUNSxSTEPS, with 2 steps at least", text));
  return design;
}

Statistic statistic_of(const std::string& text) {
  const std::map<std::string, Statistic> statistics{{"p05", Statistic::p05},
                                                    {"lower-quartile", Statistic::lower_quartile},
                                                    {"median", Statistic::median},
                                                    {"mean", Statistic::mean}};
  const auto found = statistics.find(text);
  if (found == statistics.end())
    throw std::invalid_argument(fmt::format("--statistic: '{}'; p05, lower-quartile, median or mean", text));
  return found->second;
}

Options options_of(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments.size() % 2 != 0) throw std::invalid_argument("each option has a value");
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string &name = arguments[i], &value = arguments[i + 1];
    if (name == "--seeds")
      options.seeds = std::stoull(value);
    else if (name == "--family-seeds")
      options.family_seeds = std::stoull(value);
    else if (name == "--worlds")
      options.world_names = split(value);
    else if (name == "--designs") {
      options.designs.clear();
      for (const std::string& design : split(value)) options.designs.push_back(design_of(design));
      options.family_designs = options.designs;
    } else if (name == "--changes") {
      options.changes.clear();
      for (const std::string& percent : split(value)) options.changes.push_back(std::stod(percent) / 100);
    } else if (name == "--statistic")
      options.test.statistic = statistic_of(value);
    else if (name == "--threshold") {
      options.test.threshold = std::stod(value) / 100;
      options.ab_thresholds = {options.test.threshold};
    } else if (name == "--only")
      options.only = split(value);
    else if (name == "--jobs")
      options.jobs = std::max<std::size_t>(1, std::stoull(value));
    else
      throw std::invalid_argument(fmt::format("there is no option {}", name));
  }
  if (options.world_names.empty())
    for (const World& world : worlds()) options.world_names.push_back(world.name);
  return options;
}

// Cells of a table, each made by itself, in their order.
class Cells {
 public:
  void add(std::function<Json()> cell) { cells_.push_back(std::move(cell)); }
  Json make(std::size_t jobs) const {
    std::vector<Json> made(cells_.size());
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> threads;
    for (std::size_t j = 0; j < jobs; ++j)
      threads.emplace_back([&] {
        for (std::size_t i = next++; i < cells_.size(); i = next++) made[i] = cells_[i]();
      });
    threads.clear();
    return made;
  }

 private:
  std::vector<std::function<Json()>> cells_;
};

// False: a claim where nothing differs, the wrong direction, and `same` beyond the threshold.
Json counted(const std::vector<Ending>& endings, double change, double threshold) {
  const auto count = [&](Ending ending) { return std::count(endings.begin(), endings.end(), ending); };
  const auto same = count(Ending::same), right = count(Ending::right), wrong = count(Ending::wrong),
             other = count(Ending::other);
  const auto false_ones = change > 0 ? wrong + (change > threshold ? same : 0) : right + wrong + other;
  Json json{{"trials", endings.size()}, {"false", false_ones}};
  if (change > 0) json["found"] = right;
  json["right"] = right, json["wrong"] = wrong, json["same"] = same;
  json["cannot_tell"] = count(Ending::cannot_tell), json["other"] = other;
  return json;
}

Json verdicts(const Options& options) {
  Cells cells;
  for (const std::string& name : options.world_names)
    for (const Design& design : options.designs)
      for (const double change : options.changes)
        cells.add([&options, &world = world_of(name), design, change] {
          std::vector<Ending> endings;
          for (std::uint64_t seed = 0; seed < options.seeds; ++seed)
            endings.push_back(play_verdict(world, design, change, seed, options.test));
          Json json{{"world", world.name}, {"design", design.name()}, {"change", change}};
          json.update(counted(endings, change, options.test.threshold));
          return json;
        });
  return cells.make(options.jobs);
}

Json families(const Options& options) {
  Cells cells;
  for (const std::string& name : options.world_names)
    for (const Design& design : options.family_designs)
      for (const StateOf state : {StateOf::each_case, StateOf::run}) {
        const World& world = world_of(name);
        if (state == StateOf::run && !world.runs_differ()) continue;
        cells.add([&options, &world, design, state] {
          std::size_t with_claims = 0, claims = 0;
          for (std::uint64_t seed = 0; seed < options.family_seeds; ++seed) {
            const std::size_t of_one = play_family(world, design, kCases, state, seed, options.test);
            claims += of_one, with_claims += of_one > 0;
          }
          return Json{{"world", world.name},
                      {"design", design.name()},
                      {"state_of", state == StateOf::run ? "run" : "case"},
                      {"cases", kCases},
                      {"trials", options.family_seeds},
                      {"false", with_claims},
                      {"claims", claims}};
        });
      }
  return cells.make(options.jobs);
}

Json sessions(const Options& options) {
  Cells cells;
  for (const double threshold : options.ab_thresholds)
    for (const std::string& name : options.world_names) {
      const World& world = world_of(name);
      if (world.in_blocks) continue;  // a session takes turns
      for (const double change : options.changes)
        cells.add([&options, &world, change, threshold] {
          TestOptions test = options.test;
          test.threshold = threshold, test.confidence = kConfidenceOfAb, test.run_to_run = kRunToRunOfAb;
          std::vector<Ending> endings;
          std::vector<std::size_t> runs;
          for (std::uint64_t seed = 0; seed < options.seeds; ++seed) {
            const SessionEnding session = play_session(world, kStepsOfAb, change, seed, test);
            endings.push_back(session.ending), runs.push_back(session.runs);
          }
          std::sort(runs.begin(), runs.end());
          Json json{{"world", world.name}, {"steps", kStepsOfAb}, {"threshold", threshold}, {"change", change}};
          json.update(counted(endings, change, threshold));
          json["median_runs"] = runs.at(runs.size() / 2);
          return json;
        });
    }
  return cells.make(options.jobs);
}

Json tails(const Options& options) {
  struct Row {
    const TailRow& row;
    std::vector<Design> designs;
  };
  const Row rows[] = {{tail_rows[0], {{2, 50}, {3, 20}, {3, 50}}}, {tail_rows[1], {{1, 50}, {3, 50}, {5, 50}}}};
  Cells cells;
  for (const Row& row : rows)
    for (const Design& design : row.designs)
      cells.add([&options, &tail = row.row, design] {
        std::map<std::string, std::size_t> words;
        std::size_t false_ones = 0;
        MetricOfRecord step;
        step.figure.timed = true;
        for (std::uint64_t seed = 0; seed < options.tail_seeds; ++seed) {
          const Outcome outcome = play_tail(tail, design, seed, options.test);
          ++words[verdict_word(outcome, "step", step)];
          false_ones += outcome == Outcome::lower || outcome == Outcome::same;
        }
        return Json{{"row", tail.name},
                    {"design", design.name()},
                    {"trials", options.tail_seeds},
                    {"false", false_ones},
                    {"verdicts", words}};
      });
  return cells.make(options.jobs);
}

int study(const Options& options) {
  const std::map<std::string, std::function<Json(const Options&)>> parts{
      {"verdicts", verdicts}, {"families", families}, {"ab", sessions}, {"tails", tails}};
  Json json{{"statistic", statistic_name(options.test.statistic)},
            {"threshold", options.test.threshold},
            {"confidence", options.test.confidence}};
  for (const std::string& name : options.world_names) world_of(name);
  for (const std::string& name : options.only) {
    const auto part = parts.find(name);
    if (part == parts.end())
      throw std::invalid_argument(fmt::format("--only: '{}'; verdicts, families, ab or tails", name));
    json[name] = part->second(options);
  }
  std::puts(json.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace assay::host::compare::study

int main(int argc, char** argv) {
  try {
    return assay::host::compare::study::study(assay::host::compare::study::options_of({argv + 1, argv + argc}));
  } catch (const std::exception& e) {
    fmt::print(stderr, "compare_study: {}\n", e.what());
    return 2;
  }
}
