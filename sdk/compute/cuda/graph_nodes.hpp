// What is read of a captured graph.
#pragma once
#include <cuda_runtime_api.h>

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

// Nothing of a node for whose kind the runtime has no name. Collectives that NCCL carries out by copy engines leave
// such ones, batches of operations on memory, of which the driver alone knows.
inline std::optional<cudaGraphNodeType> type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type{};
  if (cudaGraphNodeGetType(node, &type) == cudaSuccess) return type;
  (void)cudaGetLastError();  // else the next call's check would meet it
  return std::nullopt;
}

}  // namespace assay::cuda
