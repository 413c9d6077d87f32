// Finds slow nodes: compares the same cases on every node, or pair of nodes.
#pragma once
#include "compare/verdict.hpp"
#include "record/case_record.hpp"

#include <optional>
#include <string>
#include <vector>

namespace assay::host::compare {

struct NodeRankingOptions {
  // A node is named where it takes at least so much longer than the others, by the near end of the interval.
  double threshold = 0.05;
  // The chance that a cluster of equal nodes has one named, over all of its nodes and cases.
  double false_alarm = 0.01;
};

// One node in one case.
struct NodeFigure {
  std::string of_case;              // "check=copy"
  double mean_ms = 0;               // of its steps; over several runs the geometric mean
  double ratio = 1;                 // of its step time to that of the others
  std::optional<double> low, high;  // of the ratio
  Outcome outcome = Outcome::cannot_tell;
  bool is_slow = false;
};

struct RankedNode {
  std::string name;
  std::vector<NodeFigure> figures;
  // "check=copy: wrong_result": cases that are not ok here, and are ok on another node.
  std::vector<std::string> failures;
  double worst_ratio = 1;
  bool is_named() const;
};

struct NodeRanking {
  std::vector<RankedNode> nodes;  // the slowest, and those that fail, last
  std::vector<std::string> notes;
  std::vector<std::string> named() const;
};

// `records`: of a run whose cases have the axis `cluster.node`; nothing when there are no two nodes to compare. Cases
// that differ in cluster.node and run.seed alone are one case, run several times. Of pairs ("n1+n2") a node has every
// pair that it is in, against those that it is not in: a slow node shows in all of them, and a failing one fails in
// all.
//
// A node is held against the faster half of the others, so that slow ones among them do not hide it.
//
// The mean step time counts, with whatever has slowed the node down: a node that others use is a slow node.
// `expected`: the nodes, or pairs, that should have records; one without any is named, too.
std::optional<NodeRanking> rank_nodes(const std::vector<record::CaseRecord>& records,
                                      const NodeRankingOptions& options = {},
                                      const std::vector<std::string>& expected = {});

// A table for people, the names of the slow nodes, and the line for the site file.
std::string node_ranking_text(const NodeRanking& ranking);

// The ranking of nodes by these records as text for people, or as one JSON event; "" where there is none to be made.
std::string node_ranking_of(const std::vector<record::CaseRecord>& records, const std::vector<std::string>& nodes,
                            bool as_json);

}  // namespace assay::host::compare
