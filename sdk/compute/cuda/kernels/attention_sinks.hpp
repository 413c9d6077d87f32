// The gradients of attention's sinks, which no other gradient of attention needs: from the results of the forward,
// dsink = -sum over rows of exp(sink - lse) (dout . out). cuDNN has them as well, for a quarter of its backward's time.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/sink_vector.hpp"

namespace assay::cuda {

// A [B, T, H, D] operand: strides in elements, D contiguous.
struct SinkView {
  const void* data = nullptr;
  std::int64_t batch = 0, time = 0, head = 0;
};
struct SinkArgs {
  compute::DType type;  // of out and dout
  std::int64_t batch = 0, queries = 0, heads = 0, depth = 0;
  SinkView out, dout;
  const float* lse = nullptr;  // [B, H, queries]
  SinkVector sinks, dsinks;    // [H]
  bool accumulate = false;     // add to dsinks
};

// As fp32, which is what cuDNN reads.
void launch_copy_of_sinks(const SinkVector& sinks, float* copy, std::int64_t heads, cudaStream_t stream);

// The sum of a head has one owner and a fixed order.
void launch_attention_sink_gradients(const SinkArgs& args, cudaStream_t stream);

}  // namespace assay::cuda
