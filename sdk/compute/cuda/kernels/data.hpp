// Kernels that move and make data. Nothing is launched for no elements.
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/tensor.hpp>

#include <cstdint>

#include "common/kernel_shapes.hpp"

namespace assay::cuda {

// Elements of 1, 2, 4 or 8 bytes, which receive the low bytes of `bits`.
void launch_fill_bytes(cudaStream_t stream, void* to, std::size_t element_bytes, std::uint64_t bits,
                       std::int64_t count);
// Floating-point elements: the value, rounded to nearest.
void launch_fill_float(cudaStream_t stream, compute::DType type, void* to, float value, std::int64_t count);

// Between tensors of one type of any kind: bits are kept.
void launch_copy(cudaStream_t stream, std::size_t element_bytes, void* to, const void* from,
                 const compute::CopyShape& shape);
// Between two floating-point types.
void launch_convert(cudaStream_t stream, compute::DType to_type, compute::DType from_type, void* to, const void* from,
                    const compute::CopyShape& shape);

// To 8 bits: compute::op::Quantize. `transposed` may be null.
void launch_quantize(cudaStream_t stream, compute::DType format, compute::DType from_type, void* y, void* transposed,
                     const void* x, const float* max_abs, float* inverse_scale, std::int64_t rows,
                     std::int64_t columns);

// compute::op::QuantizeRows, QuantizeColumns. `partials`: column_partial_floats() of scratch_sizes.hpp.
void launch_quantize_rows(cudaStream_t stream, compute::DType format, compute::DType from_type, void* y,
                          float* inverse_scale, const void* x, std::int64_t rows, std::int64_t columns);
void launch_quantize_columns(cudaStream_t stream, compute::DType format, compute::DType from_type, void* y,
                             float* inverse_scale, float* partials, const void* x, std::int64_t rows,
                             std::int64_t columns);

// compute::op::TransposeEightBits. `places`: of a row of y; `shares`: scratch of one for each row of x. Without scales
// these and inverse_scale may be null.
void launch_transpose_eight_bits(cudaStream_t stream, void* y, const void* x, const float* scale,
                                 const float* other_scale, float* shares, float* inverse_scale, std::int64_t rows,
                                 std::int64_t columns, std::int64_t places);

// Element i: words 2 (i / 2 mod 2) and the next of block i / 4 give a pair by Box and Muller; the even one is the
// cosine. (Philox's numbering: philox.cuh.)
void launch_random_normal(cudaStream_t stream, compute::DType type, void* to, std::int64_t count, std::uint64_t seed,
                          std::uint64_t random_stream, float mean, float std);
// Element i: words 2 (i mod 2) and the next of block i / 2, as one 64-bit number, scaled to [0, range).
void launch_random_integers(cudaStream_t stream, std::int64_t* to, std::int64_t count, std::uint64_t seed,
                            std::uint64_t random_stream, std::int64_t low, std::uint64_t range);

}  // namespace assay::cuda
