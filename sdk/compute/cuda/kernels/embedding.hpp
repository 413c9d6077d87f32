// Kernels that give tokens a place: rows of a table, and rotary position.
//
// Ids are in device memory, so an id outside the table cannot be refused as the CPU refuses it. It never reads or
// writes beyond the table: the forward writes NaN into its row of the output, and the backward leaves its gradient out.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

#include "common/kernel_shapes.hpp"
#include "common/rotary_frequency.hpp"

namespace assay::cuda {

using compute::RotaryShape;

void launch_embedding_forward(cudaStream_t stream, compute::DType out_type, compute::DType table_type, void* out,
                              const void* table, const std::int64_t* ids, std::int64_t rows, std::int64_t width,
                              std::int64_t table_rows);
// Sums in fp32 in the order of rows, and rounds once. Without `accumulate` rows that no id names become 0. `marks`:
// embedding_marks() numbers of scratch, null where these are none.
void launch_embedding_backward(cudaStream_t stream, compute::DType table_type, compute::DType dout_type, void* dtable,
                               const void* dout, const std::int64_t* ids, std::int64_t rows, std::int64_t width,
                               std::int64_t table_rows, bool accumulate, std::uint32_t* marks);

// cos, sin [positions, pairs] of position * frequency, computed in double.
void launch_rotary_table(cudaStream_t stream, float* cos, float* sin, std::int64_t positions, std::int64_t pairs,
                         const compute::RotaryCurve& curve);
void launch_rotary(cudaStream_t stream, compute::DType type, void* x, const float* cos, const float* sin,
                   const RotaryShape& shape, bool inverse);

}  // namespace assay::cuda
