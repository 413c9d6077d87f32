#include "kernels/norm_total.hpp"

#include "kernels/types.cuh"

namespace assay::cuda {
namespace {

constexpr int total_columns = 32, total_parts = 16;

struct Totals {
  NormTotal of[3];
};

template <class T>
__device__ __forceinline__ void put(void* out, std::int64_t column, float sum, bool accumulate) {
  T* const at = static_cast<T*>(out) + column;
  *at = from_float<T>(accumulate ? to_float(*at) + sum : sum);
}

__global__ void __launch_bounds__(total_columns* total_parts)
    norm_total_kernel(const Totals totals, int blocks, std::int64_t columns, bool accumulate) {
  __shared__ float parts[total_parts][total_columns];
  const NormTotal total = totals.of[blockIdx.y];
  const std::int64_t column = blockIdx.x * std::int64_t{total_columns} + threadIdx.x;
  float sum = 0.0F;
  if (column < columns) {
#pragma unroll 8
    for (int b = static_cast<int>(threadIdx.y); b < blocks; b += total_parts)
      sum += total.partials[b * columns + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  sum = 0.0F;
#pragma unroll
  for (int p = 0; p < total_parts; ++p) sum += parts[p][threadIdx.x];
  switch (total.type) {
    case compute::DType::bf16: return put<bf16>(total.out, column, sum, accumulate);
    case compute::DType::f16: return put<f16>(total.out, column, sum, accumulate);
    default: return put<float>(total.out, column, sum, accumulate);
  }
}

}  // namespace

void launch_norm_totals(const NormTotals& totals, unsigned blocks, std::int64_t columns, bool accumulate,
                        cudaStream_t stream) {
  Totals wanted{};
  unsigned count = 0;
  for (const NormTotal& t : totals)
    if (t.out) wanted.of[count++] = t;
  if (count == 0) return;
  norm_total_kernel<<<dim3(grid_size(columns, total_columns), count), dim3(total_columns, total_parts), 0, stream>>>(
      wanted, static_cast<int>(blocks), columns, accumulate);
}

}  // namespace assay::cuda
