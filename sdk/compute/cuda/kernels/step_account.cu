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

constexpr int warps = threads / warp_size;

// What is added up over the places: of results and of state, sums and sums of absolute values.
struct Totals {
  double of[4];
};

// One block, in one pass: the kernel's time is that of its launch and of one row of reads. The order of the sums
// depends on the number of threads alone.
__global__ void __launch_bounds__(threads) mark_step_kernel(const StepMarks a) {
  using Columns = compute::MarkColumns;
  __shared__ Totals of_warps[warps];
  const std::int64_t step = *a.count;
  Totals totals{};
  for (std::int64_t i = threadIdx.x; i < a.place_count; i += threads) {
    const std::int64_t place = a.places[i];
    const double result = a.results.x ? element(a.results, place) : 0, state = a.state.x ? element(a.state, place) : 0;
    totals.of[0] += result, totals.of[1] += fabs(result);
    totals.of[2] += state, totals.of[3] += fabs(state);
  }
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
#pragma unroll
    for (double& total : totals.of) total += __shfl_down_sync(0xffffffffU, total, offset);
  if (threadIdx.x % warp_size == 0) of_warps[threadIdx.x / warp_size] = totals;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < warps; ++w)
    for (int k = 0; k < 4; ++k) totals.of[k] += of_warps[w].of[k];
  float* const row = a.marks + compute::row_of_mark(step, a.rows) * Columns::count;
  row[Columns::loss] = a.loss ? *a.loss : 0.0F;
  row[Columns::results] = static_cast<float>(totals.of[0]);
  row[Columns::results_magnitude] = static_cast<float>(totals.of[1]);
  row[Columns::state] = static_cast<float>(totals.of[2]);
  row[Columns::state_magnitude] = static_cast<float>(totals.of[3]);
  *a.count = step + 1;
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
