// Kernels of mixtures of experts: routing, the way of rows to their experts and back, and gated units by rows. Grouped
// products have separate files.
//
// Numbers of experts, rows and weights lie in device memory, so the device cannot refuse those out of range as the CPU
// does. They never lead beyond a tensor: a missing expert counts for nothing, and a missing row or weight makes NaN.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/operations/experts.hpp>

#include <cstdint>

#include "common/kernel_shapes.hpp"

namespace assay::cuda {

// ---- routing: matrices are contiguous, [tokens, experts] or [tokens, chosen] ---------------------------------------

struct RouteShape {
  std::int64_t tokens;
  std::int32_t experts, chosen;  // experts: most_experts at most
};

struct RouteForwardArgs {
  RouteShape shape;
  compute::DType type;  // of logits
  const void* logits;
  const float* bias;          // or NULL
  const std::int32_t* given;  // or NULL
  float *scores, *lse;
  std::int32_t* experts;
  float* weights;
  compute::RoutingRule rule;
};
void launch_route_forward(cudaStream_t stream, const RouteForwardArgs&);

struct RouteBackwardArgs {
  RouteShape shape;
  compute::DType type;  // of dlogits
  const float *scores, *lse;
  const std::int32_t *experts, *counts;
  const float* dweights;
  void* dlogits;
  compute::RoutingRule rule;
  float balance;       // of each count, in the gradient of its expert's scores
  float z;             // of lse and softmax
  const float* scale;  // or NULL
};
void launch_route_backward(cudaStream_t stream, const RouteBackwardArgs&);

// shape.chosen is not looked at: counts add up to tokens times that. `partials`: routing_loss_partials() of
// scratch_sizes.hpp.
void launch_routing_losses(cudaStream_t stream, const RouteShape& shape, const float* scores, const float* lse,
                           const std::int32_t* counts, float* losses, double* partials);

// ---- groups --------------------------------------------------------------------------------------------------------

struct GroupRowsArgs {
  std::int64_t choices;  // below 2^31
  std::int32_t groups;   // most_experts at most
  const std::int32_t* experts;
  std::int32_t *counts, *offsets, *places, *sources;
  std::int32_t* block_counts;  // group_block_counts() of scratch_sizes.hpp
};
void launch_group_rows(cudaStream_t stream, const GroupRowsArgs&);

// ---- rows: contiguous, of `width` elements -------------------------------------------------------------------------

void launch_gather_rows(cudaStream_t stream, compute::DType type, const void* x, const std::int32_t* sources,
                        void* rows, std::int64_t tokens, std::int64_t row_count, std::int64_t width,
                        std::int64_t copies);
// `residual` may be NULL. Each place is read once.
void launch_combine_rows(cudaStream_t stream, compute::DType type, const void* rows, const std::int32_t* places,
                         const void* residual, void* y, std::int64_t tokens, std::int64_t row_count,
                         std::int64_t chosen, std::int64_t width);

// ---- gated units ---------------------------------------------------------------------------------------------------

struct RowWeights {
  const float* weights;
  std::int64_t count;
  const std::int32_t* sources;  // of each row
};
void launch_weighted_gated_forward(cudaStream_t stream, compute::DType type, const void* gate, const void* up, void* h,
                                   const RowWeights& weights, const compute::GatedUnit& unit,
                                   const compute::SwigluShape& shape);
// dgate may be gate and dup may be up. `h` may be NULL; otherwise it receives the same bits as from the forward.
// `dweights` has as many numbers as there are weights.
void launch_weighted_gated_backward(cudaStream_t stream, compute::DType type, const void* gate, const void* up,
                                    const void* dh, void* dgate, void* dup, void* h, float* dweights,
                                    const RowWeights& weights, const compute::GatedUnit& unit,
                                    const compute::SwigluShape& shape);

}  // namespace assay::cuda
