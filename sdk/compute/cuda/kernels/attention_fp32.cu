#include "attention_fp32.hpp"

#include <assay/plugin.hpp>
#include <climits>

#include "attention_fp32_kernels.cuh"
#include "cuda_error.hpp"

namespace assay::cuda {
namespace {

using namespace fp32_attention;

bool wide_enough(const AttentionFp32View& v) {
  return reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0 && v.batch % 4 == 0 && v.time % 4 == 0 && v.head % 4 == 0;
}

// One block for each tile of `rows` rows of each head.
template <int BM>
unsigned blocks_of(const AttentionFp32Args& a, int rows, const char* operation) {
  const std::int64_t blocks = (static_cast<std::int64_t>(rows) + BM - 1) / BM * a.batch * a.heads;
  if (blocks > INT_MAX)
    throw Error(ASSAY_UNSUPPORTED, std::string(operation) + " on the GPU: " + std::to_string(blocks) +
                                       " tiles of fp32 attention; at most 2147483647 are served: use a smaller batch");
  return static_cast<unsigned>(blocks);
}

template <class Kernel>
void launch(Kernel kernel, unsigned blocks, int shared_bytes, const AttentionFp32Args& a, bool wide,
            cudaStream_t stream, const char* operation) {
  if (blocks == 0) return;
  // Beyond 48 KiB a kernel has to ask.
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), operation);
  kernel<<<blocks, threads, static_cast<std::size_t>(shared_bytes), stream>>>(a, wide);
  check_launch(operation);
}

template <class T, bool drops>
void forward(const AttentionFp32Args& a, cudaStream_t stream) {
  constexpr const char* operation = "attention_forward";
  const bool wide = a.depth % 4 == 0 && wide_enough(a.q) && wide_enough(a.k) && wide_enough(a.v) && wide_enough(a.out);
  launch(forward_kernel<T, drops>, blocks_of<T::BM>(a, a.queries, operation), ForwardMemory<T>::bytes, a, wide, stream,
         operation);
}

template <class T, bool drops>
void backward(const AttentionFp32Args& a, cudaStream_t stream) {
  constexpr const char* operation = "attention_backward";
  const bool wide = a.depth % 4 == 0 && wide_enough(a.q) && wide_enough(a.k) && wide_enough(a.v) &&
                    wide_enough(a.dout) && wide_enough(a.dq) && wide_enough(a.dk) && wide_enough(a.dv);
  const std::int64_t rows = a.batch * a.heads * a.queries;
  if (rows > 0) {
    if (rows > static_cast<std::int64_t>(INT_MAX) * warps)
      throw Error(ASSAY_UNSUPPORTED, std::string(operation) + " on the GPU: " + std::to_string(rows) +
                                         " rows of fp32 attention; at most 8589934588 are served: use a smaller batch");
    delta_kernel<<<static_cast<unsigned>((rows + warps - 1) / warps), threads, 0, stream>>>(a);
    check_launch(operation);
  }
  launch(key_gradient_kernel<T, drops>, blocks_of<T::BM>(a, a.keys, operation), BackwardMemory<T>::bytes, a, wide,
         stream, operation);
  launch(query_gradient_kernel<T, drops>, blocks_of<T::BM>(a, a.queries, operation), BackwardMemory<T>::bytes, a, wide,
         stream, operation);
}

// The tilings: as large as the registers allow, and such that two blocks fit a multiprocessor of Hopper (up to 128).
template <bool drops>
void forward_of_depth(const AttentionFp32Args& args, cudaStream_t stream) {
  if (args.depth <= 32) return forward<Tiling<32, 128, 64>, drops>(args, stream);
  if (args.depth <= 64) return forward<Tiling<64, 128, 64>, drops>(args, stream);
  if (args.depth <= 96) return forward<Tiling<96, 64, 64>, drops>(args, stream);
  if (args.depth <= 128) return forward<Tiling<128, 64, 64>, drops>(args, stream);
  return forward<Tiling<256, 64, 32>, drops>(args, stream);
}

template <bool drops>
void backward_of_depth(const AttentionFp32Args& args, cudaStream_t stream) {
  if (args.depth <= 32) return backward<Tiling<32, 64, 64>, drops>(args, stream);
  if (args.depth <= 64) return backward<Tiling<64, 64, 64>, drops>(args, stream);
  if (args.depth <= 96) return backward<Tiling<96, 64, 32>, drops>(args, stream);
  if (args.depth <= 128) return backward<Tiling<128, 64, 32>, drops>(args, stream);
  return backward<Tiling<256, 32, 32>, drops>(args, stream);
}

}  // namespace

void attention_fp32_forward(const AttentionFp32Args& args, cudaStream_t stream) {
  if (args.dropout.drop_below > 0) return forward_of_depth<true>(args, stream);
  forward_of_depth<false>(args, stream);
}

void attention_fp32_backward(const AttentionFp32Args& args, cudaStream_t stream) {
  if (args.dropout.drop_below > 0) return backward_of_depth<true>(args, stream);
  backward_of_depth<false>(args, stream);
}

}  // namespace assay::cuda
