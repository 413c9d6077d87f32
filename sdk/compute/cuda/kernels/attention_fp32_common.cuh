// What the files of fp32 attention share. Each block has a tile of BM rows whose results it owns, and walks the other
// side of the attention in tiles of BN: no result has two owners, and every sum has a fixed order. Included by .cu
// files only.
#pragma once
#include "attention_fp32_tile.cuh"
#include "cuda_error.hpp"
#include "kernels/dropout.cuh"

namespace assay::cuda::fp32_attention {

// The keys that a tile's last query sees, and with it all others of the tile.
__device__ inline int keys_seen(const AttentionFp32Args& a, int queries_end) {
  if (!a.causal) return a.keys;
  return max(0, min(a.keys, min(queries_end, a.queries) + (a.keys - a.queries)));
}

// The first key that a query sees, whatever is causal. Documents are of the modified form of the kernels.
template <bool modified>
__device__ inline int first_seen(const AttentionFp32Args& a, std::int64_t batch, int query) {
  const int of_window = a.window > 0 ? max(0, query + (a.keys - a.queries) + 1 - a.window) : 0;
  if constexpr (modified)
    if (a.first_keys && query < a.queries) return max(of_window, a.first_keys[batch * a.queries + query]);
  return of_window;
}
// Behind the last query that sees a key, by its window.
__device__ inline int queries_seeing(const AttentionFp32Args& a, int key) {
  return a.window > 0 ? max(0, min(a.queries, key + a.window - (a.keys - a.queries))) : a.queries;
}

// What a soft cap makes of a score, and the slope that it puts on the score's gradient.
struct Capped {
  float score, slope;
};
__device__ inline Capped capped(const AttentionFp32Args& a, float score) {
  if (a.soft_cap == 0.0F) return {score, 1.0F};
  const float t = tanhf(score / a.soft_cap);
  return {a.soft_cap * t, 1.0F - t * t};
}

// What dropout makes of the probabilities of one head: 0 or 1 / (1 - p) for each.
class Dropped {
 public:
  __device__ explicit Dropped(const AttentionFp32Args& a, const Job& job)
      : key_(a.dropout.drop_below > 0 ? step_key(a.dropout) : PhiloxKey{}),  // without dropout there is no step to read

        head_((job.batch * a.heads + job.head) * a.queries * a.keys),
        drop_below_(a.dropout.drop_below),
        factor_(a.dropout.factor) {}
  __device__ float operator()(const AttentionFp32Args& a, int query, int k) const {
    if (drop_below_ == 0) return 1.0F;
    const std::int64_t element = head_ + static_cast<std::int64_t>(query) * a.keys + k;
    return kept(key_, static_cast<std::uint64_t>(element), drop_below_) ? factor_ : 0.0F;
  }

 private:
  PhiloxKey key_;
  std::int64_t head_;
  std::uint32_t drop_below_;
  float factor_;
};
struct NotDropped {
  __device__ NotDropped(const AttentionFp32Args&, const Job&) {}
};
// Kernels are made in two forms: that of plain attention, and one that has dropout, a soft cap and documents where
// these are asked for.
template <bool modified>
using Dropping = std::conditional_t<modified, Dropped, NotDropped>;

// The backward's shared memory: two operands of the block's own rows, two of the other side, a tile of scores, and the
// statistics of BN queries.
template <class T>
struct BackwardMemory {
  static constexpr int own0 = 0, own1 = own0 + T::BM * T::row_stride;
  static constexpr int other0 = own1 + T::BM * T::row_stride, other1 = other0 + T::BN * T::row_stride;
  static constexpr int p = other1 + T::BN * T::row_stride;
  static constexpr int lse = p + T::BM * T::score_stride, delta = lse + T::BN;
  static constexpr int bytes = 4 * (delta + T::BN);
};

// ---- host side -----------------------------------------------------------------------------------------------------

inline bool wide_enough(const AttentionFp32View& v) {
  return reinterpret_cast<std::uintptr_t>(v.data) % 16 == 0 && v.batch % 4 == 0 && v.time % 4 == 0 && v.head % 4 == 0;
}
inline bool wide_enough(const AttentionFp32Args& a, std::initializer_list<const AttentionFp32View*> views) {
  return a.depth % 4 == 0 && a.value_depth % 4 == 0 &&
         std::all_of(views.begin(), views.end(), [](const auto* v) { return wide_enough(*v); });
}

inline bool wide_in_backward(const AttentionFp32Args& a) {
  return wide_enough(a, {&a.q, &a.k, &a.v, &a.dout, &a.dq, &a.dk, &a.dv});
}

// One block for each tile of BM of the `rows` rows of each of `heads` heads.
template <class T>
unsigned blocks_of(const AttentionFp32Args& a, int rows, std::int64_t heads, const char* operation) {
  const std::int64_t blocks = ceil_div(rows, T::BM) * a.batch * heads;
  if (blocks > INT32_MAX) refuse_count(operation, blocks, "tiles of fp32 attention; at most 2147483647 are served");
  return static_cast<unsigned>(blocks);
}

inline bool is_modified(const AttentionFp32Args& a) {
  return a.dropout.drop_below > 0 || a.soft_cap > 0.0F || a.first_keys;
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

// Tiles of queries, keys and values have one width, that of the wider ones: the others have zeros there.
inline int widest(const AttentionFp32Args& a) { return std::max(a.depth, a.value_depth); }

// The tilings: as large as the registers allow, and such that two blocks fit a multiprocessor of Hopper (up to 128).
// f(TypeTag<Tiling>()).
template <class F>
void with_backward_tiling(const AttentionFp32Args& a, F&& f) {
  const int depth = widest(a);
  if (depth <= 32) return f(TypeTag<Tiling<32, 64, 64>>());
  if (depth <= 64) return f(TypeTag<Tiling<64, 64, 64>>());
  if (depth <= 96) return f(TypeTag<Tiling<96, 64, 32>>());
  if (depth <= 128) return f(TypeTag<Tiling<128, 64, 32>>());
  return f(TypeTag<Tiling<256, 32, 32>>());
}

// The part of the backward in a separate file, to be compiled beside the rest. It needs delta.
void key_gradients(const AttentionFp32Args& a, const char* operation, cudaStream_t stream);

}  // namespace assay::cuda::fp32_attention
