// Products of groups of rows, each with its group's own matrix. Groups are known on the device alone: offsets, int32
// [groups + 1]. Two families of kernels: Hopper's warpgroup matrix units for 16-bit types, and plain arithmetic for
// the rest: fp32 is exact there, whatever the math of products. Nothing is launched for no elements.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/operations/optimizers.hpp>
#include <assay/compute/tensor.hpp>

#include <cstdint>

#include "scratch_sizes.hpp"

namespace assay::cuda {

inline constexpr int most_groups = most_experts;

enum class GroupedForm {
  rows_by_transposed,  // c[r, :] = a[r, :] b[e]^T; a [M, K], b [E, Q, K], c [M, Q]
  rows,                // c[r, :] = a[r, :] b[e]; a [M, K], b [E, K, Q], c [M, Q]
  weights              // c[e] (+)= sum over rows of e of a[r, :]^T b[r, :]; a [M, Q], b [M, K], c [E, Q, K]
};

// AdamW of the matrices whose gradient c is, in bf16 like c, by the kernel that has just made it. Null: none.
struct GroupedUpdate {
  void *parameter, *first, *second;
  const std::int64_t* step;
  const float* lr;
  compute::AdamWOptions options;
  const std::int64_t* gradient_place;  // where c is null: its address, or 0 for none
};

struct GroupedProduct {
  GroupedForm form;
  compute::DType type, result;  // of a and b; of c
  const void *a, *b;
  void* c;
  const void* bias;  // [E, Q] of `type`; null: none. Not with weights
  const std::int32_t* offsets;
  std::int64_t groups, rows;    // E and M
  std::int64_t columns, inner;  // of c, and of what is summed over (of weights the columns of a: Q)
  bool accumulate = false;      // of weights
  GroupedUpdate update = {};    // of weights in bf16 on matrix units
};

// Whether the kernels for Hopper's matrix units serve it on a GPU of this compute capability (9.0: major 9).
bool serves_by_matrix_units(const GroupedProduct& product, int major);
// `multiprocessors`: so many thread blocks run; each takes tiles in turn.
void launch_grouped_by_matrix_units(cudaStream_t stream, const GroupedProduct& product, int multiprocessors);
void launch_grouped_plain(cudaStream_t stream, const GroupedProduct& product);
// Copies to the address that *place holds, unless that is 0; `bytes` is a multiple of 2, as are both addresses.
void launch_copy_to_place(cudaStream_t stream, const void* from, const std::int64_t* place, std::size_t bytes);
// dbias[e, :] (+)= the sums of dy's rows of each group, in a fixed order; dy [rows, columns].
void launch_grouped_bias_gradient(cudaStream_t stream, compute::DType type, compute::DType result, const void* dy,
                                  const std::int32_t* offsets, void* dbias, std::int64_t groups, std::int64_t columns,
                                  bool accumulate);

}  // namespace assay::cuda
