#include "attention_fp32_common.cuh"

namespace assay::cuda::fp32_attention {

// Gradients of a tile of keys and values: own rows are keys, the columns of the scores are queries. A group's heads
// of queries follow each other: the sum over them has one owner, too.
template <class T, bool modified>
__global__ void __launch_bounds__(threads, 2) key_gradient_kernel(const AttentionFp32Args a, bool wide) {
  using Memory = BackwardMemory<T>;
  extern __shared__ float4 shared_quads[];
  float* const shared = reinterpret_cast<float*>(shared_quads);
  const Job job = job_of(a.batch, a.key_heads);  // the first keys are seen by most queries
  const int first_key = job.tile * T::BM, valid_keys = a.keys - first_key;
  const int offset = a.keys - a.queries;
  const Place at = place<T>();

  load_tile<T::BM, T::DP>(shared + Memory::own0, start_of(a.k, job, first_key), a.k.time, valid_keys, a.depth, wide);
  load_tile<T::BM, T::DP>(shared + Memory::own1, start_of(a.v, job, first_key), a.v.time, valid_keys, a.value_depth,
                          wide);
  float4 dk[T::rows][T::quads], dv[T::rows][T::quads];
  fill(dk, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  fill(dv, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  for (int member = 0; member < a.group; ++member) {
    const Job of_queries{job.tile, job.batch, job.head * a.group + member};
    const Dropping<modified> mask(a, of_queries);
    const std::int64_t statistics = (of_queries.batch * a.heads + of_queries.head) * a.queries;
    const int keys_end = first_key + min(T::BM, valid_keys), queries_end = queries_seeing(a, keys_end - 1);
    for (int first_query = a.causal ? max(0, first_key - offset) : 0; first_query < queries_end; first_query += T::BN) {
      if (first_seen<modified>(a, job.batch, first_query) >= keys_end) break;  // later ones see still later keys
      __syncthreads();                                                         // the tile before this has been read
      const int valid_queries = a.queries - first_query;
      load_tile<T::BN, T::DP>(shared + Memory::other0, start_of(a.q, of_queries, first_query), a.q.time, valid_queries,
                              a.depth, wide);
      load_tile<T::BN, T::DP>(shared + Memory::other1, start_of(a.dout, of_queries, first_query), a.dout.time,
                              valid_queries, a.value_depth, wide);
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
        const int seen = column < valid_queries
                             ? (a.causal ? min(a.keys, first_query + column + offset + 1) : a.keys) - first_key
                             : 0;
        const int hidden = first_seen<modified>(a, job.batch, first_query + column) - first_key;
#pragma unroll
        for (int i = 0; i < T::rows; ++i) {
          Capped of{score[i][j] * a.scale, 1.0F};
          if constexpr (modified) of = capped(a, of.score);
          const float p = exp2f((of.score - lse) * log2_e);
          score[i][j] = at.row + 4 * i < seen && at.row + 4 * i >= hidden ? p : 0.0F;
          if constexpr (modified) {
            const float factor = mask(a, first_query + column, first_key + at.row + 4 * i);
            dscore[i][j] = score[i][j] * (dscore[i][j] * factor - delta) * a.scale * of.slope;
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
  }

  float one[T::rows];
  fill(one, 1.0F);
  store_rows<T>(start_of(a.dk, job, first_key), a.dk.time, valid_keys, a.depth, wide, dk, one, at);
  store_rows<T>(start_of(a.dv, job, first_key), a.dv.time, valid_keys, a.value_depth, wide, dv, one, at);
}

void key_gradients(const AttentionFp32Args& a, const char* operation, cudaStream_t stream) {
  with_backward_tiling(a, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel = is_modified(a) ? key_gradient_kernel<T, true> : key_gradient_kernel<T, false>;
    launch(kernel, blocks_of<T>(a, a.keys, a.key_heads, operation), BackwardMemory<T>::bytes, a, wide_in_backward(a),
           stream, operation);
  });
}

}  // namespace assay::cuda::fp32_attention
