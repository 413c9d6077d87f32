// The backward: delta, then the gradients by keys and values (attention_fp32_keys.cu), then those by queries.
#include "attention_fp32_common.cuh"

namespace assay::cuda {
namespace fp32_attention {

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
  for (int d = static_cast<int>(threadIdx.x) % 32; d < a.value_depth; d += 32) sum = fmaf(dout[d], out[d], sum);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  if (threadIdx.x % 32 == 0) a.delta[row] = sum;
}

// Gradients of a tile of queries: own rows are queries, the columns of the scores are keys.
template <class T, bool modified>
__global__ void __launch_bounds__(threads, 2) query_gradient_kernel(const AttentionFp32Args a, bool wide) {
  using Memory = BackwardMemory<T>;
  extern __shared__ float4 shared_quads[];
  float* const shared = reinterpret_cast<float*>(shared_quads);
  Job job = job_of(a.batch, a.heads);
  job.tile = (a.queries + T::BM - 1) / T::BM - 1 - job.tile;  // the last queries see most keys
  const int first_query = job.tile * T::BM, valid_queries = a.queries - first_query;
  const int keys_end = keys_seen(a, first_query + T::BM);
  const Place at = place<T>();
  const Dropping<modified> mask(a, job);
  const Job of_keys = keys_of(a, job);

  load_tile<T::BM, T::DP>(shared + Memory::own0, start_of(a.q, job, first_query), a.q.time, valid_queries, a.depth,
                          wide);
  load_tile<T::BM, T::DP>(shared + Memory::own1, start_of(a.dout, job, first_query), a.dout.time, valid_queries,
                          a.value_depth, wide);
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

  for (int first_key = first_seen<modified>(a, job.batch, first_query) / T::BN * T::BN; first_key < keys_end;
       first_key += T::BN) {
    __syncthreads();  // the tile before this has been read
    const int valid_keys = a.keys - first_key;
    load_tile<T::BN, T::DP>(shared + Memory::other0, start_of(a.k, of_keys, first_key), a.k.time, valid_keys, a.depth,
                            wide);
    load_tile<T::BN, T::DP>(shared + Memory::other1, start_of(a.v, of_keys, first_key), a.v.time, valid_keys,
                            a.value_depth, wide);
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
      const int hidden = first_seen<modified>(a, job.batch, first_query + row) - first_key;
#pragma unroll
      for (int j = 0; j < T::columns; ++j) {
        Capped of{score[i][j] * a.scale, 1.0F};
        if constexpr (modified) of = capped(a, of.score);
        const float p = exp2f((of.score - lse[i]) * log2_e);
        const float seen_p = at.column + 8 * j < seen && at.column + 8 * j >= hidden ? p : 0.0F;
        if constexpr (modified) dscore[i][j] *= mask(a, first_query + row, first_key + at.column + 8 * j);
        score[i][j] = seen_p * (dscore[i][j] - delta[i]) * a.scale;
        if constexpr (modified) score[i][j] *= of.slope;
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

void query_gradients(const AttentionFp32Args& a, const char* operation, cudaStream_t stream) {
  with_backward_tiling(a, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel = is_modified(a) ? query_gradient_kernel<T, true> : query_gradient_kernel<T, false>;
    launch(kernel, blocks_of<T>(a, a.queries, a.heads, operation), BackwardMemory<T>::bytes, a, wide_in_backward(a),
           stream, operation);
  });
}

}  // namespace fp32_attention

void attention_fp32_backward(const AttentionFp32Args& a, cudaStream_t stream) {
  using namespace fp32_attention;
  constexpr const char* operation = "attention_backward";
  if (const std::int64_t rows = a.batch * a.heads * a.queries; rows > 0) {
    if (rows > std::int64_t{INT32_MAX} * warps)
      refuse_count(operation, rows, "rows of fp32 attention; at most 8589934588 are served");
    delta_kernel<<<static_cast<unsigned>(ceil_div(rows, warps)), threads, 0, stream>>>(a);
    check_launch(operation);
  }
  key_gradients(a, operation, stream);
  query_gradients(a, operation, stream);
}

}  // namespace assay::cuda
