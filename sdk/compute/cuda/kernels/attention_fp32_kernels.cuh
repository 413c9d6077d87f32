// The fp32 attention kernels. Each block has a tile of BM rows whose results it owns, and walks the other side of the
// attention in tiles of BN: no result has two owners, and every sum has a fixed order.
#pragma once
#include "attention_fp32_tile.cuh"
#include "kernels/dropout.cuh"

namespace assay::cuda::fp32_attention {

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

// The keys that a tile's last query sees, and with it all others of the tile.
__device__ inline int keys_seen(const AttentionFp32Args& a, int queries_end) {
  if (!a.causal) return a.keys;
  return max(0, min(a.keys, min(queries_end, a.queries) + (a.keys - a.queries)));
}

// What dropout makes of the probabilities of one head: 0 or 1 / (1 - p) for each.
class Dropped {
 public:
  __device__ explicit Dropped(const AttentionFp32Args& a, const Job& job)
      : key_(step_key(a.dropout)),
        head_((job.batch * a.heads + job.head) * a.queries * a.keys),
        drop_below_(a.dropout.drop_below),
        factor_(a.dropout.factor) {}
  __device__ float operator()(const AttentionFp32Args& a, int query, int k) const {
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
template <bool drops>
using Dropping = std::conditional_t<drops, Dropped, NotDropped>;

template <class T, bool drops>
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
  const Dropping<drops> mask(a, job);

  load_tile<T::BM, T::DP>(shared + Memory::q, start_of(a.q, job, first_query), a.q.time, valid_queries, a.depth, wide);
  float4 out[T::rows][T::quads];
  fill(out, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  float high[T::rows], sum[T::rows];  // the running maximum of a row; this lane's part of its running sum
  fill(high, -infinity);
  fill(sum, 0.0F);

  for (int first_key = 0; first_key < keys_end; first_key += T::BN) {
    __syncthreads();  // the tile before this has been read
    const int valid_keys = a.keys - first_key;
    load_tile<T::BN, T::DP>(shared + Memory::k, start_of(a.k, job, first_key), a.k.time, valid_keys, a.depth, wide);
    load_tile<T::BN, T::DP>(shared + Memory::v, start_of(a.v, job, first_key), a.v.time, valid_keys, a.depth, wide);
    __syncthreads();
    float score[T::rows][T::columns];
    multiply_rows<T>(score, shared + Memory::q, shared + Memory::k, at);
#pragma unroll
    for (int i = 0; i < T::rows; ++i) {
      const int query = first_query + at.row + 4 * i;
      const int seen = (a.causal ? min(a.keys, query + 1 + (a.keys - a.queries)) : a.keys) - first_key;
      float tile_high = -infinity;
#pragma unroll
      for (int j = 0; j < T::columns; ++j) {
        score[i][j] = at.column + 8 * j < seen ? score[i][j] * a.scale : -infinity;
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
        if constexpr (drops) score[i][j] *= mask(a, first_query + at.row + 4 * i, first_key + at.column + 8 * j);
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
    if (at.column == 0 && at.row + 4 * i < valid_queries)
      lse[at.row + 4 * i] = sum[i] == 0.0F ? -infinity : high[i] + logf(sum[i]);
  }
  store_rows<T>(start_of(a.out, job, first_query), a.out.time, valid_queries, a.depth, wide, out, factor, at);
}

// delta = the row sums of dout * out, a warp per row.
__global__ void __launch_bounds__(threads) delta_kernel(const AttentionFp32Args a) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / 32;
  if (row >= a.batch * a.heads * a.queries) return;
  const int query = static_cast<int>(row % a.queries);
  const std::int64_t sequence = row / a.queries;
  const Job job{0, sequence / a.heads, sequence % a.heads};
  const float* const dout = start_of(a.dout, job, query);
  const float* const out = start_of(a.out, job, query);
  float sum = 0.0F;
  for (int d = static_cast<int>(threadIdx.x) % 32; d < a.depth; d += 32) sum = fmaf(dout[d], out[d], sum);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (threadIdx.x % 32 == 0) a.delta[row] = sum;
}

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

// Gradients of a tile of keys and values: own rows are keys, the columns of the scores are queries.
template <class T, bool drops>
__global__ void __launch_bounds__(threads, 2) key_gradient_kernel(const AttentionFp32Args a, bool wide) {
  using Memory = BackwardMemory<T>;
  extern __shared__ float4 shared_quads[];
  float* const shared = reinterpret_cast<float*>(shared_quads);
  const Job job = job_of(a.batch, a.heads);  // the first keys are seen by most queries
  const int first_key = job.tile * T::BM, valid_keys = a.keys - first_key;
  const int offset = a.keys - a.queries;
  const Place at = place<T>();
  const Dropping<drops> mask(a, job);

  load_tile<T::BM, T::DP>(shared + Memory::own0, start_of(a.k, job, first_key), a.k.time, valid_keys, a.depth, wide);
  load_tile<T::BM, T::DP>(shared + Memory::own1, start_of(a.v, job, first_key), a.v.time, valid_keys, a.depth, wide);
  float4 dk[T::rows][T::quads], dv[T::rows][T::quads];
  fill(dk, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  fill(dv, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  const std::int64_t statistics = (job.batch * a.heads + job.head) * a.queries;

  for (int first_query = a.causal ? max(0, first_key - offset) : 0; first_query < a.queries; first_query += T::BN) {
    __syncthreads();  // the tile before this has been read
    const int valid_queries = a.queries - first_query;
    load_tile<T::BN, T::DP>(shared + Memory::other0, start_of(a.q, job, first_query), a.q.time, valid_queries, a.depth,
                            wide);
    load_tile<T::BN, T::DP>(shared + Memory::other1, start_of(a.dout, job, first_query), a.dout.time, valid_queries,
                            a.depth, wide);
    if (const int i = static_cast<int>(threadIdx.x); i < T::BN) {
      shared[Memory::lse + i] = i < valid_queries ? a.lse[statistics + first_query + i] : 0.0F;
      shared[Memory::delta + i] = i < valid_queries ? a.delta[statistics + first_query + i] : 0.0F;
    }
    __syncthreads();
    float score[T::rows][T::columns], dscore[T::rows][T::columns];
    multiply_rows<T>(score, shared + Memory::own0, shared + Memory::other0, at);
    multiply_rows<T>(dscore, shared + Memory::own1, shared + Memory::other1, at);
#pragma unroll
    for (int j = 0; j < T::columns; ++j) {
      const int column = at.column + 8 * j;
      const float lse = shared[Memory::lse + column], delta = shared[Memory::delta + column];
      // How many keys of this tile the query sees.
      const int seen =
          column < valid_queries ? (a.causal ? min(a.keys, first_query + column + offset + 1) : a.keys) - first_key : 0;
#pragma unroll
      for (int i = 0; i < T::rows; ++i) {
        const float p = exp2f((score[i][j] * a.scale - lse) * log2_e);
        score[i][j] = at.row + 4 * i < seen ? p : 0.0F;
        if constexpr (drops) {
          const float factor = mask(a, first_query + column, first_key + at.row + 4 * i);
          dscore[i][j] = score[i][j] * (dscore[i][j] * factor - delta) * a.scale;
          score[i][j] *= factor;
        } else {
          dscore[i][j] = score[i][j] * (dscore[i][j] - delta) * a.scale;
        }
      }
    }
    store_scores<T>(shared + Memory::p, score, at);
    __syncwarp();
    multiply_columns<T>(dv, shared + Memory::p, shared + Memory::other1, at);
    __syncwarp();
    store_scores<T>(shared + Memory::p, dscore, at);
    __syncwarp();
    multiply_columns<T>(dk, shared + Memory::p, shared + Memory::other0, at);
  }

  float one[T::rows];
  fill(one, 1.0F);
  store_rows<T>(start_of(a.dk, job, first_key), a.dk.time, valid_keys, a.depth, wide, dk, one, at);
  store_rows<T>(start_of(a.dv, job, first_key), a.dv.time, valid_keys, a.depth, wide, dv, one, at);
}

// Gradients of a tile of queries: own rows are queries, the columns of the scores are keys.
template <class T, bool drops>
__global__ void __launch_bounds__(threads, 2) query_gradient_kernel(const AttentionFp32Args a, bool wide) {
  using Memory = BackwardMemory<T>;
  extern __shared__ float4 shared_quads[];
  float* const shared = reinterpret_cast<float*>(shared_quads);
  Job job = job_of(a.batch, a.heads);
  job.tile = (a.queries + T::BM - 1) / T::BM - 1 - job.tile;  // the last queries see most keys
  const int first_query = job.tile * T::BM, valid_queries = a.queries - first_query;
  const int keys_end = keys_seen(a, first_query + T::BM);
  const Place at = place<T>();
  const Dropping<drops> mask(a, job);

  load_tile<T::BM, T::DP>(shared + Memory::own0, start_of(a.q, job, first_query), a.q.time, valid_queries, a.depth,
                          wide);
  load_tile<T::BM, T::DP>(shared + Memory::own1, start_of(a.dout, job, first_query), a.dout.time, valid_queries,
                          a.depth, wide);
  float4 dq[T::rows][T::quads];
  fill(dq, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  float lse[T::rows], delta[T::rows];
  const std::int64_t statistics = (job.batch * a.heads + job.head) * a.queries + first_query;
#pragma unroll
  for (int i = 0; i < T::rows; ++i) {
    const int row = at.row + 4 * i;
    lse[i] = row < valid_queries ? a.lse[statistics + row] : 0.0F;
    delta[i] = row < valid_queries ? a.delta[statistics + row] : 0.0F;
  }

  for (int first_key = 0; first_key < keys_end; first_key += T::BN) {
    __syncthreads();  // the tile before this has been read
    const int valid_keys = a.keys - first_key;
    load_tile<T::BN, T::DP>(shared + Memory::other0, start_of(a.k, job, first_key), a.k.time, valid_keys, a.depth,
                            wide);
    load_tile<T::BN, T::DP>(shared + Memory::other1, start_of(a.v, job, first_key), a.v.time, valid_keys, a.depth,
                            wide);
    __syncthreads();
    float score[T::rows][T::columns], dscore[T::rows][T::columns];
    multiply_rows<T>(score, shared + Memory::own0, shared + Memory::other0, at);
    multiply_rows<T>(dscore, shared + Memory::own1, shared + Memory::other1, at);
#pragma unroll
    for (int i = 0; i < T::rows; ++i) {
      const int row = at.row + 4 * i;
      const int seen = row < valid_queries
                           ? (a.causal ? min(a.keys, first_query + row + 1 + (a.keys - a.queries)) : a.keys) - first_key
                           : 0;
#pragma unroll
      for (int j = 0; j < T::columns; ++j) {
        const float p = exp2f((score[i][j] * a.scale - lse[i]) * log2_e);
        const float seen_p = at.column + 8 * j < seen ? p : 0.0F;
        if constexpr (drops) dscore[i][j] *= mask(a, first_query + row, first_key + at.column + 8 * j);
        score[i][j] = seen_p * (dscore[i][j] - delta[i]) * a.scale;
      }
    }
    store_scores<T>(shared + Memory::p, score, at);
    __syncwarp();
    multiply_columns<T>(dq, shared + Memory::p, shared + Memory::other0, at);
  }

  float one[T::rows];
  fill(one, 1.0F);
  store_rows<T>(start_of(a.dq, job, first_query), a.dq.time, valid_queries, a.depth, wide, dq, one, at);
}

}  // namespace assay::cuda::fp32_attention
