// A kernel whose launch is all that it costs, for the probes.
#include "cuda/cuda_error.hpp"
#include "cuda/probes.hpp"

namespace {

__global__ void do_nothing() {}

}  // namespace

namespace assay::cuda {

void launch_nothing(cudaStream_t stream) {
  do_nothing<<<1, 1, 0, stream>>>();
  check_launch("launch a kernel that does nothing");
}

}  // namespace assay::cuda
