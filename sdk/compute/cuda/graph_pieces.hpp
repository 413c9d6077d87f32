// A captured graph in pieces, for the sake of the host's time to launch it.
#pragma once
#include <vector>

#include "cuda_handles.hpp"

namespace assay::cuda {

// A graph, or none, and the event that is recorded on the stream behind it, or none.
struct GraphPiece {
  GraphTemplate graph;
  cudaEvent_t event = nullptr;
};

// Cuts a long graph whose nodes follow each other in one line at the events that it records. The driver launches a line
// of kernels in nearly constant time, and any other node makes the host's time grow with the number of all nodes. What
// branches, and what is so short that a launch weighs more than its nodes, stays one piece with its events in it.
std::vector<GraphPiece> in_pieces(GraphTemplate graph);

}  // namespace assay::cuda
