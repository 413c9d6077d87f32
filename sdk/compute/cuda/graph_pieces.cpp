#include "graph_pieces.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cuda_error.hpp"
#include "graph_nodes.hpp"

namespace assay::cuda {
namespace {

// A launch more costs the device some 2 us between two pieces, which is nothing beside a step of so many nodes.
constexpr std::size_t least_nodes = 128;

// The nodes in their order if each waits for the one before alone; else none.
std::vector<cudaGraphNode_t> in_a_line(cudaGraph_t graph, std::size_t count) {
  std::size_t roots = 0;
  check(cudaGraphGetRootNodes(graph, nullptr, &roots), "count the roots of a graph");
  if (roots != 1) return {};
  cudaGraphNode_t node = nullptr;
  check(cudaGraphGetRootNodes(graph, &node, &roots), "read the root of a graph");
  std::vector<cudaGraphNode_t> line{node};
  for (;;) {
    std::size_t followers = 0;
    check(cudaGraphNodeGetDependentNodes(node, nullptr, nullptr, &followers), "read the edges of a graph's node");
    if (followers == 0) break;
    if (followers > 1) return {};
    cudaGraphEdgeData edge{};
    check(cudaGraphNodeGetDependentNodes(node, &node, &edge, &followers), "read the edges of a graph's node");
    line.push_back(node);
  }
  return line.size() == count ? line : std::vector<cudaGraphNode_t>();
}

// Those that a step of ours is made of, and that a graph's copy has as they are.
bool may_be_cut(cudaGraphNode_t node) {
  const auto type = type_of(node);
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemset || type == cudaGraphNodeTypeMemcpy ||
         type == cudaGraphNodeTypeEventRecord;
}

// Of a line, what lies from `begin` to `end`.
GraphTemplate part_of(cudaGraph_t whole, const std::vector<cudaGraphNode_t>& line, std::size_t begin, std::size_t end) {
  cudaGraph_t made = nullptr;
  check(cudaGraphClone(&made, whole), "copy a graph");
  GraphTemplate part(made);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i >= begin && i < end) continue;
    cudaGraphNode_t copy = nullptr;
    check(cudaGraphNodeFindInClone(&copy, line[i], made), "find a node in a graph's copy");
    check(cudaGraphDestroyNode(copy), "take a node out of a graph");
  }
  return part;
}

}  // namespace

std::vector<GraphPiece> in_pieces(cudaGraph_t graph) {
  std::vector<GraphPiece> pieces;
  const std::vector<cudaGraphNode_t> nodes = nodes_of(graph);
  std::vector<cudaGraphNode_t> line;
  if (nodes.size() >= least_nodes && std::all_of(nodes.begin(), nodes.end(), may_be_cut))
    line = in_a_line(graph, nodes.size());
  std::size_t begin = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (type_of(line[i]) != cudaGraphNodeTypeEventRecord) continue;
    GraphPiece piece;
    if (i > begin) piece.graph = part_of(graph, line, begin, i);
    check(cudaGraphEventRecordNodeGetEvent(line[i], &piece.event), "read an event of a graph");
    pieces.push_back(std::move(piece));
    begin = i + 1;
  }
  if (!pieces.empty() && begin < line.size()) pieces.push_back({part_of(graph, line, begin, line.size())});
  return pieces;
}

}  // namespace assay::cuda
