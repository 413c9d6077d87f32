#include "kernels/step_account.hpp"

#include <assay/compute/operations/account.hpp>

#include "cuda_error.hpp"
#include "kernels/held.cuh"

namespace assay::cuda {
namespace {

constexpr int threads = 256;

__device__ double element(const StepMarks::Summed& t, std::int64_t place) {
  switch (t.type) {
    case compute::DType::bf16: return static_cast<double>(to_float(static_cast<const __nv_bfloat16*>(t.x)[place]));
    case compute::DType::f16: return static_cast<double>(to_float(static_cast<const __half*>(t.x)[place]));
    default: return static_cast<double>(static_cast<const float*>(t.x)[place]);
  }
}

__global__ void __launch_bounds__(threads) spoil_places_kernel(const SpoiledPlaces a) {
  constexpr unsigned short not_a_number = 0x7fff;  // in bf16 and in fp16
  if (threadIdx.x == 0 && a.loss) *a.loss = __int_as_float(0x7fffffff);
  for (std::int64_t i = threadIdx.x; i < a.place_count; i += threads) {
    if (a.type == compute::DType::f32)
      static_cast<float*>(a.x)[a.places[i]] = __int_as_float(0x7fffffff);
    else
      static_cast<unsigned short*>(a.x)[a.places[i]] = not_a_number;
  }
}

// The total over the block, in thread 0; the order of the sums depends on the number of threads alone.
__device__ double block_total(double total, double* of_warps) {
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffffU, total, offset);
  if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size] = total;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < threads / warp_size; ++w) total += of_warps[w];
  __syncthreads();
  return total;
}

__global__ void __launch_bounds__(threads) mark_step_kernel(const StepMarks a) {
  using Columns = compute::MarkColumns;
  __shared__ double of_warps[threads / warp_size];
  float* const row = a.marks + compute::row_of_mark(*a.count, a.rows) * Columns::count;
  const auto add_up = [&](const StepMarks::Summed& t, std::int64_t column) {
    double sum = 0, magnitude = 0;
    if (t.x)
      for (std::int64_t i = threadIdx.x; i < a.place_count; i += threads) {
        const double x = element(t, a.places[i]);
        sum += x;
        magnitude += fabs(x);
      }
    sum = block_total(sum, of_warps);
    magnitude = block_total(magnitude, of_warps);
    if (threadIdx.x != 0) return;
    row[column] = static_cast<float>(sum);
    row[column + 1] = static_cast<float>(magnitude);
  };
  add_up(a.results, Columns::results);
  add_up(a.state, Columns::state);
  if (threadIdx.x != 0) return;
  row[Columns::loss] = a.loss ? *a.loss : 0.0F;
  ++*a.count;
}

}  // namespace

void spoil_places(const SpoiledPlaces& a, cudaStream_t stream) {
  spoil_places_kernel<<<1, threads, 0, stream>>>(a);
  check_launch("spoil_places");
}

void mark_step(const StepMarks& a, cudaStream_t stream) {
  mark_step_kernel<<<1, threads, 0, stream>>>(a);
  check_launch("mark_step");
}

}  // namespace assay::cuda
