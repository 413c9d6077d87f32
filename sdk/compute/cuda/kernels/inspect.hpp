// Kernels of the inspector: sums in float64 over tensors of any type. Simple on purpose, and apart from the kernels of
// the operations (assay/compute/inspector.hpp).
#pragma once
#include <cuda_runtime_api.h>
#include <assay/compute/inspector.hpp>

#include <cstdint>

namespace assay::cuda {

// A tensor as it lies: element (i, j, k, l) of up to four dimensions at the sum of index times step.
struct Inspected {
  const void* x = nullptr;
  compute::DType type = compute::DType::f32;
  std::int64_t dims[4] = {1, 1, 1, 1}, steps[4] = {0, 0, 0, 0};  // the last one is innermost
};

// `count` elements from `offset` on, `step` apart, to out[to ...].
struct GatheredSegment {
  std::int64_t offset, count, to;
};
void gather(const Inspected& t, std::int64_t step, const GatheredSegment* segments, std::int64_t count, double* out,
            cudaStream_t stream);
void gather(const Inspected& t, std::int64_t step, const GatheredSegment* segments, std::int64_t count, float* out,
            cudaStream_t stream);

// Adds to *sum, which is 0 before.
void hash(const void* bytes, std::int64_t count, unsigned long long* sum, cudaStream_t stream);

// Of a matrix, dims[2] rows of dims[3] columns: values[i] = sum w x, squares[i] = sum w' x x.
void sum_rows(const Inspected& t, const double* weights, const double* square_weights, double* values, double* squares,
              cudaStream_t stream);
// Adds to values and squares, which are 0 before.
void sum_columns(const Inspected& t, const double* weights, const double* square_weights, double* values,
                 double* squares, cudaStream_t stream);

void sum_spans(const Inspected& t, const compute::WeightedSpan* spans, std::int64_t count, const float* weights,
               std::int64_t period, compute::WeightedSum* sums, cudaStream_t stream);

// y [rows, dims[2]] = x [rows, dims[3]] times the transpose of w, a matrix.
void product(const double* x, std::int64_t rows, const Inspected& w, double* y, cudaStream_t stream);

// `found` is contiguous, a matrix; a [rows, dims[2]], b [rows, dims[3]].
void difference_from_product(const Inspected& found, float factor, const double* a, const double* b, std::int64_t rows,
                             compute::BlockSums::Block* blocks, cudaStream_t stream);
// `found` is contiguous, `expected` of any steps; both of `count` elements.
void difference(const Inspected& found, const Inspected& expected, std::int64_t count,
                compute::BlockSums::Block* blocks, cudaStream_t stream);

}  // namespace assay::cuda
