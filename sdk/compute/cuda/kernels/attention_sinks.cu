#include "kernels/attention_sinks.hpp"

#include "cuda_error.hpp"
#include "kernels/sink_vector.cuh"

namespace assay::cuda {
namespace {

constexpr int warps_of_head = 32;

template <class T>
__device__ const T* row_of(const SinkView& view, std::int64_t batch, std::int64_t head, std::int64_t time) {
  return static_cast<const T*>(view.data) + batch * view.batch + time * view.time + head * view.head;
}

// A block per head; each warp has every 32nd row of it.
template <class T>
__global__ void __launch_bounds__(32 * warps_of_head) sink_gradients_kernel(const SinkArgs a) {
  __shared__ float of_warps[warps_of_head];
  const std::int64_t head = blockIdx.x, rows = a.batch * a.queries;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const float sink = sink_of(a.sinks, head);
  float sum = 0.0F;  // this lane's columns of the warp's rows
  for (std::int64_t row = warp; row < rows; row += warps_of_head) {
    const std::int64_t batch = row / a.queries, query = row % a.queries;
    const T* const out = row_of<T>(a.out, batch, head, query);
    const T* const dout = row_of<T>(a.dout, batch, head, query);
    float part = 0.0F;
    for (std::int64_t d = lane; d < a.depth; d += 32) part = fmaf(to_float(out[d]), to_float(dout[d]), part);
    sum = fmaf(-expf(sink - a.lse[(batch * a.heads + head) * a.queries + query]), part, sum);
  }
  sum = warp_sum(sum);
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = warp_sum(of_warps[lane]);
  if (lane == 0) store_sink_gradient(a.dsinks, head, sum, a.accumulate);
}

__global__ void copy_of_sinks_kernel(SinkVector sinks, float* copy, std::int64_t heads) {
  const std::int64_t head = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (head < heads) copy[head] = sink_of(sinks, head);
}

}  // namespace

void launch_copy_of_sinks(const SinkVector& sinks, float* copy, std::int64_t heads, cudaStream_t stream) {
  constexpr std::int64_t threads = 128;
  copy_of_sinks_kernel<<<static_cast<unsigned>((heads + threads - 1) / threads), threads, 0, stream>>>(sinks, copy,
                                                                                                       heads);
  check_launch("attention_forward");
}

void launch_attention_sink_gradients(const SinkArgs& a, cudaStream_t stream) {
  if (a.heads == 0) return;
  dispatch_float(a.type, [&](auto tag) {
    sink_gradients_kernel<typename decltype(tag)::type>
        <<<static_cast<unsigned>(a.heads), 32 * warps_of_head, 0, stream>>>(a);
  });
  check_launch("attention_backward");
}

}  // namespace assay::cuda
