// What is read of a captured graph.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include "cuda_error.hpp"

namespace assay::cuda {

inline std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count), "count the nodes of a graph");
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) check(cudaGraphGetNodes(graph, nodes.data(), &count), "read the nodes of a graph");
  return nodes;
}

// Skips nodes for whose kind the runtime has no name. Collectives that NCCL carries out by copy engines leave such
// nodes: batches of memory operations, which only the driver knows.
inline std::optional<cudaGraphNodeType> type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  if (cudaGraphNodeGetType(node, &type) == cudaSuccess) return type;
  (void)cudaGetLastError();  // else the next call's check would meet it
  return std::nullopt;
}

// The nodes at the other ends of a node's edges.
struct NodeEdges {
  std::vector<cudaGraphNode_t> nodes;
  bool are_plain = true;  // all of them wait for the end of a node
};

template <class Get>
NodeEdges edges_of(cudaGraphNode_t node, Get get) {
  NodeEdges edges;
  std::size_t count = 0;
  check(get(node, nullptr, nullptr, &count), "read the edges of a graph's node");
  edges.nodes.resize(count);
  std::vector<cudaGraphEdgeData> data(count);
  if (count > 0) check(get(node, edges.nodes.data(), data.data(), &count), "read the edges of a graph's node");
  const cudaGraphEdgeData plain = {};
  edges.are_plain = std::all_of(data.begin(), data.end(), [&](const cudaGraphEdgeData& edge) {
    return std::memcmp(&edge, &plain, sizeof plain) == 0;
  });
  return edges;
}
inline NodeEdges dependencies_of(cudaGraphNode_t node) { return edges_of(node, cudaGraphNodeGetDependencies); }
inline NodeEdges dependents_of(cudaGraphNode_t node) { return edges_of(node, cudaGraphNodeGetDependentNodes); }

}  // namespace assay::cuda
