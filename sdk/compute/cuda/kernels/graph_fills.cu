#include "kernels/graph_fills.hpp"

#include <vector>

#include "cuda_error.hpp"
#include "cuda_handles.hpp"
#include "graph_nodes.hpp"
#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;

template <class T>
__global__ void __launch_bounds__(threads)
    graph_fill_kernel(char* begin, std::size_t pitch, T value, std::size_t width, std::size_t rows) {
  const std::size_t step = std::size_t{gridDim.x} * threads;
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < width * rows; i += step)
    reinterpret_cast<T*>(begin + i / width * pitch)[i % width] = value;
}

// More than 1 MiB are left to memset, which then pays for itself.
constexpr std::size_t most_bytes = std::size_t{1} << 20;

template <class T>
cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaMemsetParams& fill,
                           const std::vector<cudaGraphNode_t>& before) {
  auto* begin = static_cast<char*>(fill.dst);
  auto value = static_cast<T>(fill.value);
  std::size_t pitch = fill.pitch, width = fill.width, rows = fill.height;
  void* arguments[] = {&begin, &pitch, &value, &width, &rows};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(graph_fill_kernel<T>);
  kernel.gridDim = dim3(grid_size(static_cast<std::int64_t>(width * rows), threads, 64));
  kernel.blockDim = dim3(threads);
  kernel.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  check(cudaGraphAddKernelNode(&node, graph, before.data(), before.size(), &kernel), "add a fill to a graph");
  // A node that is added has the lowest priority, that of the side lane's work, and the product behind it would wait.
  cudaKernelNodeAttrValue priority = {};
  priority.priority = priority_of_steps;
  check(cudaGraphKernelNodeSetAttribute(node, cudaKernelNodeAttributePriority, &priority),
        "give a fill of a graph its priority");
  return node;
}

}  // namespace

void fill_by_kernels(cudaGraph_t graph) {
  for (const cudaGraphNode_t node : nodes_of(graph)) {
    if (type_of(node) != cudaGraphNodeTypeMemset) continue;
    cudaMemsetParams fill{};
    check(cudaGraphMemsetNodeGetParams(node, &fill), "read a fill of a graph");
    const std::size_t bytes = fill.elementSize * fill.width * fill.height;
    if (bytes == 0 || bytes > most_bytes) continue;
    const NodeEdges before = dependencies_of(node), after = dependents_of(node);
    if (!before.are_plain || !after.are_plain) continue;
    cudaGraphNode_t kernel = nullptr;
    switch (fill.elementSize) {
      case 1: kernel = add_kernel<std::uint8_t>(graph, fill, before.nodes); break;
      case 2: kernel = add_kernel<std::uint16_t>(graph, fill, before.nodes); break;
      default: kernel = add_kernel<std::uint32_t>(graph, fill, before.nodes); break;
    }
    const std::vector<cudaGraphNode_t> from(after.nodes.size(), kernel);
    if (!from.empty())
      check(cudaGraphAddDependencies(graph, from.data(), after.nodes.data(), nullptr, from.size()),
            "order a fill of a graph");
    check(cudaGraphDestroyNode(node), "take a fill out of a graph");
  }
}

}  // namespace assay::cuda
