#include "compare/node_ranking.hpp"

#include "compare/ends.hpp"
#include "compare/metric.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace assay::host::compare {
namespace {

constexpr const char* node_key = "cluster.node";
constexpr const char* round_key = "run.seed";
// From here on a node that cannot be distinguished from the others deserves another look.
constexpr double unsure_ratio = 1.2;

std::vector<std::string> nodes_in(const std::string& group) {
  std::vector<std::string> nodes;
  std::size_t begin = 0;
  for (std::size_t plus; (plus = group.find('+', begin)) != std::string::npos; begin = plus + 1)
    nodes.push_back(group.substr(begin, plus - begin));
  nodes.push_back(group.substr(begin));
  return nodes;
}

// The axes that distinguish the checks.
std::string case_of(const record::CaseRecord& record) {
  std::string text;
  for (const auto& [key, value] : record.identity.axes)
    if (key != node_key && key != round_key)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, to_text(value));
  return text.empty() ? "step" : text;
}

struct Measured {
  std::vector<std::string> nodes;
  const record::CaseRecord* record;
  std::optional<RunFigure> figure;  // of a case that is ok
};

std::optional<RunFigure> figure_in(const record::CaseRecord& record) {
  if (!record.result.is_ok()) return std::nullopt;
  const auto metric = metric_of(record, "step");
  if (!metric) return std::nullopt;
  RunFigure figure = metric->figure;
  figure.waited_share = 0;
  figure.shared_device = false;
  return figure;
}

bool has(const Measured& measured, const std::string& node) {
  return std::find(measured.nodes.begin(), measured.nodes.end(), node) != measured.nodes.end();
}

// The nodes, or pairs, that a node is held against: the faster half of those that it is no part of. Slow ones among the
// others would hide it.
std::vector<std::string> reference_groups(const std::vector<Measured>& runs, const std::string& node) {
  std::map<std::string, std::vector<double>> times;
  for (const Measured& measured : runs)
    if (measured.figure && !has(measured, node))
      times[fmt::format("{}", fmt::join(measured.nodes, "+"))].push_back(std::log(measured.figure->mean));
  std::vector<std::pair<double, std::string>> by_time;
  for (const auto& [group, logs] : times)
    by_time.emplace_back(std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size()), group);
  std::sort(by_time.begin(), by_time.end());
  by_time.resize((by_time.size() + 1) / 2);
  std::vector<std::string> groups;
  for (const auto& [time, group] : by_time) groups.push_back(group);
  return groups;
}

class Ranker {
 public:
  Ranker(const std::vector<record::CaseRecord>& records, const NodeRankingOptions& options,
         const std::vector<std::string>& expected)
      : options_(options) {
    for (const std::string& group : expected)
      for (const std::string& name : nodes_in(group))
        if (names_.insert(name).second) order_.push_back(name);
    for (const record::CaseRecord& record : records) {
      const Value* node = record::find(record.identity.axes, node_key);
      if (!node || record.is_former) continue;
      Measured measured{nodes_in(to_text(*node)), &record, figure_in(record)};
      for (const std::string& name : measured.nodes)
        if (names_.insert(name).second) order_.push_back(name);
      const std::string of_case = case_of(record);
      if (!by_case_.contains(of_case)) cases_.push_back(of_case);
      by_case_[of_case].push_back(std::move(measured));
    }
  }

  std::optional<NodeRanking> rank() {
    if (order_.size() < 2) return std::nullopt;
    NodeRanking ranking;
    for (const std::string& name : order_) {
      RankedNode node;
      node.name = name;
      for (const std::string& of_case : cases_) add_case(of_case, node);
      ranking.nodes.push_back(std::move(node));
    }
    const bool has_something = std::any_of(ranking.nodes.begin(), ranking.nodes.end(), [](const RankedNode& node) {
      return !node.figures.empty() || !node.failures.empty();
    });
    if (!has_something) return std::nullopt;
    std::stable_sort(ranking.nodes.begin(), ranking.nodes.end(), [](const RankedNode& a, const RankedNode& b) {
      return std::tuple(a.is_named(), !a.failures.empty(), a.worst_ratio) <
             std::tuple(b.is_named(), !b.failures.empty(), b.worst_ratio);
    });
    if (has_single_runs_)
      ranking.notes.emplace_back(
          "some cases ran once on a node, so how far runs differ is assumed; sweep run.seed to measure it");
    return ranking;
  }

 private:
  void add_case(const std::string& of_case, RankedNode& node) {
    TestedSide here{node.name, {}}, others{"the other nodes", {}};
    std::size_t failed_count = 0, ok_count = 0;
    std::string status;
    const std::vector<Measured>& runs = by_case_[of_case];
    for (const Measured& measured : runs) {
      if (!has(measured, node.name)) continue;
      if (measured.figure) here.runs.push_back(*measured.figure);
      const bool is_ok = measured.record->result.is_ok();
      if (!is_ok) status = measured.record->result.status_text();
      ++(is_ok ? ok_count : failed_count);
    }
    for (const std::string& group : reference_groups(runs, node.name))
      for (const Measured& measured : runs)
        if (measured.figure && fmt::format("{}", fmt::join(measured.nodes, "+")) == group)
          others.runs.push_back(*measured.figure);
    // What fails everywhere is no finding on a node, nor is one failed pair of a node whose other pairs are ok.
    const bool is_of_pairs =
        std::any_of(runs.begin(), runs.end(), [](const Measured& m) { return m.nodes.size() > 1; });
    if (failed_count > 0 && !others.runs.empty() && (!is_of_pairs || ok_count == 0))
      node.failures.push_back(fmt::format("{}: {}", of_case, status));
    if (failed_count + ok_count == 0 && !others.runs.empty()) node.failures.push_back(of_case + ": no record");
    if (here.runs.empty() || others.runs.empty()) return;
    has_single_runs_ = has_single_runs_ || here.runs.size() < 2;
    TestOptions test;
    test.statistic = Statistic::mean;
    test.states = 0;  // a node in a slow state is what is looked for
    test.threshold = options_.threshold;
    test.confidence = 1 - options_.false_alarm / static_cast<double>(order_.size() * cases_.size());
    const TestResult result = compare_figures(others, here, test);
    const Ends ends = ends_of(result.ratio, result.low, result.high);
    NodeFigure figure{of_case, result.value_b, result.ratio, ends.low, ends.high, result.outcome, false};
    figure.is_slow = ends.low && *ends.low > 1 + options_.threshold;
    node.worst_ratio = std::max(node.figures.empty() ? 0 : node.worst_ratio, result.ratio);
    node.figures.push_back(std::move(figure));
  }

  const NodeRankingOptions& options_;
  std::set<std::string> names_;
  std::vector<std::string> order_, cases_;
  std::map<std::string, std::vector<Measured>> by_case_;
  bool has_single_runs_ = false;
};

std::string interval_text(const NodeFigure& figure) {
  if (!figure.low && !figure.high) return "";
  const auto text = [](const std::optional<double>& end) { return end ? fmt::format("{:.3f}", *end) : "?"; };
  return fmt::format("{} .. {}", text(figure.low), text(figure.high));
}

const char* word_of(const NodeFigure& figure) {
  if (figure.is_slow) return "slower";
  switch (figure.outcome) {
    case Outcome::same: return "same";
    case Outcome::lower: return "faster";
    case Outcome::higher: return "a little slower";  // surely slower, and perhaps by less than the threshold
    case Outcome::differs:
    case Outcome::differs_in_tail:
    case Outcome::cannot_tell: break;
  }
  return "cannot tell";
}

}  // namespace

bool RankedNode::is_named() const {
  return !failures.empty() ||
         std::any_of(figures.begin(), figures.end(), [](const NodeFigure& figure) { return figure.is_slow; });
}

std::vector<std::string> NodeRanking::named() const {
  std::vector<std::string> names;
  for (const RankedNode& node : nodes)
    if (node.is_named()) names.push_back(node.name);
  return names;
}

std::optional<NodeRanking> rank_nodes(const std::vector<record::CaseRecord>& records, const NodeRankingOptions& options,
                                      const std::vector<std::string>& expected) {
  return Ranker(records, options, expected).rank();
}

std::string node_ranking_text(const NodeRanking& ranking) {
  std::size_t node_width = 4, case_width = 4;
  for (const RankedNode& node : ranking.nodes) {
    node_width = std::max(node_width, node.name.size());
    for (const NodeFigure& figure : node.figures) case_width = std::max(case_width, figure.of_case.size());
  }
  std::string text = fmt::format("{:<{}}  {:<{}}  {:>12}  {:>8}  {:<16}  {}\n", "node", node_width, "case", case_width,
                                 "step.mean_ms", "ratio", "interval", "to the other nodes");
  for (const RankedNode& node : ranking.nodes) {
    for (const NodeFigure& figure : node.figures)
      text += fmt::format("{:<{}}  {:<{}}  {:>12.4g}  {:>8.3f}  {:<16}  {}\n", node.name, node_width, figure.of_case,
                          case_width, figure.mean_ms, figure.ratio, interval_text(figure), word_of(figure));
    for (const std::string& failure : node.failures)
      text += fmt::format("{:<{}}  {}\n", node.name, node_width, failure);
  }
  for (const std::string& note : ranking.notes) text += fmt::format("note: {}\n", note);
  const std::vector<std::string> named = ranking.named();
  const bool is_unsure = std::any_of(ranking.nodes.begin(), ranking.nodes.end(), [](const RankedNode& node) {
    return std::any_of(node.figures.begin(), node.figures.end(), [](const NodeFigure& figure) {
      return figure.outcome == Outcome::cannot_tell && figure.ratio > unsure_ratio;
    });
  });
  if (is_unsure)
    text +=
        "some nodes took longer, but by less than their runs differ, so they may not be slow; take more steps, more "
        "values of run.seed, or a quieter cluster\n";
  else if (named.empty())
    text += "no node is slower than the others\n";
  if (named.empty()) return text;
  text += fmt::format("slow or failing: {}\nfor the site file: exclude = [\"{}\"]\n", fmt::join(named, ", "),
                      fmt::join(named, "\", \""));
  return text;
}

std::string node_ranking_of(const std::vector<record::CaseRecord>& records, const std::vector<std::string>& nodes,
                            bool as_json) {
  const auto ranking = rank_nodes(records, {}, nodes);
  if (!ranking) return "";
  if (!as_json) return "\n" + node_ranking_text(*ranking);
  return nlohmann::ordered_json{{"event", "node_ranking"}, {"slow_or_failing", ranking->named()}}.dump() + "\n";
}

}  // namespace assay::host::compare
