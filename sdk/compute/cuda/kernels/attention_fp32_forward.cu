#include "attention_fp32_common.cuh"

namespace assay::cuda {
namespace fp32_attention {

// What the forward keeps in shared memory: q [BM, DP], k and v [BN, DP], probabilities [BM, BN]. These lie over k where
// they fit, at the price of one more barrier, to let two blocks share a multiprocessor.
template <class T>
struct ForwardMemory {
  static constexpr int q = 0, k = q + T::BM * T::row_stride, v = k + T::BN * T::row_stride;
  static constexpr bool over_k = T::BM * T::score_stride <= T::BN * T::row_stride;
  static constexpr int end_of_v = v + T::BN * T::row_stride;
  static constexpr int p = over_k ? k : end_of_v;
  static constexpr int bytes = 4 * (over_k ? end_of_v : end_of_v + T::BM * T::score_stride);
};

template <class T, bool modified>
__global__ void __launch_bounds__(threads, 2) forward_kernel(const AttentionFp32Args a, bool wide) {
  using Memory = ForwardMemory<T>;
  extern __shared__ float4 shared_quads[];
  float* const shared = reinterpret_cast<float*>(shared_quads);
  Job job = job_of(a.batch, a.heads);
  job.tile = (a.queries + T::BM - 1) / T::BM - 1 - job.tile;  // the last queries see most keys
  const int first_query = job.tile * T::BM, valid_queries = a.queries - first_query;
  const int keys_end = keys_seen(a, first_query + T::BM);
  const Place at = place<T>();
  const float infinity = __int_as_float(0x7f800000);
  const Dropping<modified> mask(a, job);
  const Job of_keys = keys_of(a, job);

  load_tile<T::BM, T::DP>(shared + Memory::q, start_of(a.q, job, first_query), a.q.time, valid_queries, a.depth, wide);
  float4 out[T::rows][T::quads];
  fill(out, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  float high[T::rows], sum[T::rows];  // the running maximum of a row; this lane's part of its running sum
  fill(high, -infinity);
  fill(sum, 0.0F);

  for (int first_key = first_seen<modified>(a, job.batch, first_query) / T::BN * T::BN; first_key < keys_end;
       first_key += T::BN) {
    __syncthreads();  // the tile before this has been read
    const int valid_keys = a.keys - first_key;
    load_tile<T::BN, T::DP>(shared + Memory::k, start_of(a.k, of_keys, first_key), a.k.time, valid_keys, a.depth, wide);
    load_tile<T::BN, T::DP>(shared + Memory::v, start_of(a.v, of_keys, first_key), a.v.time, valid_keys, a.value_depth,
                            wide);
    __syncthreads();
    float score[T::rows][T::columns];
    multiply_rows<T>(score, shared + Memory::q, shared + Memory::k, at);
#pragma unroll
    for (int i = 0; i < T::rows; ++i) {
      const int query = first_query + at.row + 4 * i;
      const int seen = (a.causal ? min(a.keys, query + 1 + (a.keys - a.queries)) : a.keys) - first_key;
      const int hidden = first_seen<modified>(a, job.batch, query) - first_key;
      float tile_high = -infinity;
#pragma unroll
      for (int j = 0; j < T::columns; ++j) {
        score[i][j] *= a.scale;
        if constexpr (modified) score[i][j] = capped(a, score[i][j]).score;
        score[i][j] = at.column + 8 * j < seen && at.column + 8 * j >= hidden ? score[i][j] : -infinity;
        tile_high = fmaxf(tile_high, score[i][j]);
      }
#pragma unroll
      for (int step = 1; step < 8; step *= 2) tile_high = fmaxf(tile_high, __shfl_xor_sync(~0U, tile_high, step));
      const float new_high = fmaxf(high[i], tile_high);
      const float origin = new_high == -infinity ? 0.0F : new_high;  // no key seen yet: -inf - -inf would be NaN
      const float shrink = exp2f((high[i] - origin) * log2_e);
      high[i] = new_high;
      sum[i] *= shrink;
#pragma unroll
      for (int j = 0; j < T::columns; ++j) {
        score[i][j] = exp2f((score[i][j] - origin) * log2_e);
        sum[i] += score[i][j];
        if constexpr (modified) score[i][j] *= mask(a, first_query + at.row + 4 * i, first_key + at.column + 8 * j);
      }
#pragma unroll
      for (int q = 0; q < T::quads; ++q) {
        out[i][q].x *= shrink, out[i][q].y *= shrink, out[i][q].z *= shrink, out[i][q].w *= shrink;
      }
    }
    if constexpr (Memory::over_k) __syncthreads();  // every warp is done with k
    store_scores<T>(shared + Memory::p, score, at);
    __syncwarp();
    multiply_columns<T>(out, shared + Memory::p, shared + Memory::v, at);
  }

  float factor[T::rows];
  float* const lse = a.lse + (job.batch * a.heads + job.head) * a.queries + first_query;
#pragma unroll
  for (int i = 0; i < T::rows; ++i) {
#pragma unroll
    for (int step = 1; step < 8; step *= 2) sum[i] += __shfl_xor_sync(~0U, sum[i], step);
    factor[i] = sum[i] == 0.0F ? 0.0F : 1.0F / sum[i];
    float origin = high[i], whole = sum[i];
    if (a.sinks) {
      const float sink = a.sinks[job.head];
      origin = fmaxf(high[i], sink);
      const float fade = exp2f((high[i] - origin) * log2_e);
      whole = whole * fade + exp2f((sink - origin) * log2_e);
      factor[i] = fade / whole;
    }
    if (at.column == 0 && at.row + 4 * i < valid_queries)
      lse[at.row + 4 * i] = whole == 0.0F ? -infinity : origin + logf(whole);
  }
  store_rows<T>(start_of(a.out, job, first_query), a.out.time, valid_queries, a.value_depth, wide, out, factor, at);
}

}  // namespace fp32_attention
namespace {

using namespace fp32_attention;

template <class T>
void forward(const AttentionFp32Args& a, cudaStream_t stream) {
  constexpr const char* operation = "attention_forward";
  const auto kernel = is_modified(a) ? forward_kernel<T, true> : forward_kernel<T, false>;
  launch(kernel, blocks_of<T>(a, a.queries, a.heads, operation), ForwardMemory<T>::bytes, a,
         wide_enough(a, {&a.q, &a.k, &a.v, &a.out}), stream, operation);
}

}  // namespace

// The tilings: as large as the registers allow, and such that two blocks fit a multiprocessor of Hopper (up to 128).
void attention_fp32_forward(const AttentionFp32Args& a, cudaStream_t stream) {
  const int depth = fp32_attention::widest(a);
  if (depth <= 32) return forward<Tiling<32, 128, 64>>(a, stream);
  if (depth <= 64) return forward<Tiling<64, 128, 64>>(a, stream);
  if (depth <= 96) return forward<Tiling<96, 64, 64>>(a, stream);
  if (depth <= 128) return forward<Tiling<128, 64, 64>>(a, stream);
  forward<Tiling<256, 64, 32>>(a, stream);
}

}  // namespace assay::cuda
