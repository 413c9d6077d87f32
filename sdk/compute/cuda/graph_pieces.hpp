// A captured graph in pieces, for the sake of the host's time to launch it.
#pragma once
#include <vector>

#include "cuda_handles.hpp"

namespace assay::cuda {

// A part of a graph, or none, and the event that is recorded on the stream behind it, or none.
struct GraphPiece {
  GraphTemplate graph;
  cudaEvent_t event = nullptr;
};

// Cuts a long graph whose nodes follow each other in one line at the events that it records. The driver launches a line
// of kernels in nearly constant time, and any other node makes the host's time grow with the number of all nodes. What
// branches, and what is so short that a launch weighs more than its nodes, stays whole: then there are no pieces.
std::vector<GraphPiece> in_pieces(cudaGraph_t graph);

}  // namespace assay::cuda
