// Rows of a table by id, and their gradient.
#include <cstring>

#include "cuda_error.hpp"
#include "kernels/embedding.hpp"
#include "kernels/tiles.cuh"
#include "kernels/types.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

constexpr int threads = 256;

// ---- forward -------------------------------------------------------------------------------------------------------

constexpr int packs_each = 2;

template <class Out, class Table, int N>
__global__ void __launch_bounds__(threads)
    embedding_forward_kernel(Out* __restrict__ out, const Table* __restrict__ table,
                             const std::int64_t* __restrict__ ids, std::uint32_t packs, FastDivision packs_per_row,
                             std::int64_t width, std::int64_t table_rows) {
  const std::uint32_t first = blockIdx.x * (threads * packs_each) + threadIdx.x;
  Pack<Table, N> value[packs_each];
  std::int64_t target[packs_each];
  bool inside[packs_each];
#pragma unroll
  for (int k = 0; k < packs_each; ++k) {
    std::uint32_t row = first + k * threads;
    if (row >= packs) continue;
    const std::int64_t column = static_cast<std::int64_t>(packs_per_row.split(row)) * N;
    const std::int64_t id = __ldg(ids + row);
    target[k] = row * width + column;
    inside[k] = id >= 0 && id < table_rows;
    if (inside[k]) value[k] = load_pack<N, Cache::constant>(table + id * width + column);
  }
#pragma unroll
  for (int k = 0; k < packs_each; ++k) {
    if (first + k * threads >= packs) continue;
    float x[N];
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = inside[k] ? to_float(value[k].v[j]) : __int_as_float(0x7fc00000);
    store_pack(out + target[k], pack_from<Out>(x));
  }
}

template <class Out, class Table, int N>
void forward(cudaStream_t stream, Out* out, const Table* table, const std::int64_t* ids, std::int64_t rows,
             std::int64_t width, std::int64_t table_rows) {
  for_tiles(rows, width / N, [&](std::int64_t row, std::int64_t count, std::int64_t pack, std::int64_t packs) {
    const std::int64_t total = count * packs;
    embedding_forward_kernel<Out, Table, N><<<grid_size(total, threads * packs_each), threads, 0, stream>>>(
        out + row * width + pack * N, table + pack * N, ids + row, static_cast<std::uint32_t>(total),
        FastDivision(packs), width, table_rows);
    check_launch("embedding_forward");
  });
}

// ---- backward ------------------------------------------------------------------------------------------------------
// A block owns a few rows of the table and a strip of columns, one to four for each thread. It reads the ids in chunks,
// collects the places that name its rows, in order, and then every thread adds those rows of dout in its own columns. A
// thread's sums lie in shared memory, which no other thread touches; the current row is summed in registers. Where the
// width leaves threads without columns, groups of fewer warps own separate rows, so that a block serves more rows of
// the table with one look at the ids. With a large table, most chunks name no row of most blocks: a first kernel marks
// for each block the chunks that do, and the block skips the others, which changes no sum.

constexpr int owned_rows = embedding_owned_rows, owned_bits = 3;
constexpr int warps = threads / warp_size;
constexpr int ids_each = 8;  // per thread and chunk
constexpr int chunk_ids = threads * ids_each, place_bits = 11;
static_assert(chunk_ids == embedding_chunk_ids);
static_assert(chunk_ids == 1 << place_bits && owned_rows == 1 << owned_bits && place_bits + owned_bits <= 16);

// Loads of dout under way per thread: a row that many ids name is added at the speed of these.
template <class Dout>
constexpr int hits_under_way = sizeof(Dout) == 2 ? 12 : 8;

// Keeps the compiler from taking a batch apart into single numbers at once, which needs twice the registers.
__device__ __forceinline__ void hold_back(unsigned short& w) { asm volatile("" : "+h"(w)); }
__device__ __forceinline__ void hold_back(unsigned int& w) { asm volatile("" : "+r"(w)); }
__device__ __forceinline__ void hold_back(uint2& w) { asm volatile("" : "+r"(w.x), "+r"(w.y)); }
__device__ __forceinline__ void hold_back(uint4& w) { asm volatile("" : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w)); }

// Bit c of a mark: chunk c, c + 32, c + 64 ... has an id of its rows.
__global__ void __launch_bounds__(threads)
    embedding_mark_kernel(std::uint32_t* __restrict__ marks, const std::int64_t* __restrict__ ids, std::int64_t rows,
                          std::int64_t table_rows) {
  const std::int64_t place = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (place >= rows) return;
  const std::int64_t id = __ldg(ids + place);
  if (id >= 0 && id < table_rows) atomicOr(marks + id / owned_rows, 1u << (place / chunk_ids % 32));
}

template <class Table, class Dout, int N, int groups>
__global__ void __launch_bounds__(threads, 3)
    embedding_backward_kernel(Table* __restrict__ dtable, const Dout* __restrict__ dout,
                              const std::int64_t* __restrict__ ids, const std::uint32_t* __restrict__ marks,
                              std::int64_t rows, std::int64_t width, std::int64_t table_rows, unsigned strips,
                              bool accumulate) {
  constexpr int group_threads = threads / groups;
  using Hit = std::conditional_t<groups == 1, std::uint16_t, std::uint32_t>;
  __shared__ Pack<float, N> sums[owned_rows][threads];
  __shared__ Hit hits[chunk_ids];   // place in the chunk, and above it the row of the block's
  __shared__ int counts[2][warps];  // in turn, so that one barrier a chunk is enough when nothing is found

  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const int group = threadIdx.x / group_threads, thread = threadIdx.x % group_threads;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x / strips) * (owned_rows * groups);
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x % strips) * group_threads + thread) * N;
  const bool has_column = column < width;
  const int owned = static_cast<int>(min(static_cast<std::int64_t>(owned_rows * groups), table_rows - first_row));

  float sum[N] = {};
  int current = -1;      // the row that `sum` belongs to
  unsigned touched = 0;  // rows that some id named
  const auto put_away = [&] {
    if (current < 0) return;
#pragma unroll
    for (int j = 0; j < N; ++j) sums[current][threadIdx.x].v[j] = sum[j];
  };

  constexpr int batch = hits_under_way<Dout>;
  using Word = typename PackWords<Dout, N>::word;
  const auto load = [&](std::int64_t place) {
    return __ldg(reinterpret_cast<const Word*>(dout + place * width + column));
  };
  const auto gather = [&](int row, Word& word) {
    if (row != current) {  // the same for all threads of the group
      put_away();
#pragma unroll
      for (int c = 0; c < N; ++c) sum[c] = touched >> row & 1u ? sums[row][threadIdx.x].v[c] : 0.0F;
      current = row;
      touched |= 1u << row;
    }
    hold_back(word);
    Pack<Dout, N> value;
    memcpy(&value, &word, sizeof value);
#pragma unroll
    for (int c = 0; c < N; ++c) sum[c] += to_float(value.v[c]);
  };

  std::uint32_t mark = marks ? 0 : ~0u;
  if (marks)
    for (int g = 0; g * owned_rows < owned; ++g) mark |= __ldg(marks + first_row / owned_rows + g);

  int turn = 1, chunk = 0;
  for (std::int64_t base = 0; base < rows; base += chunk_ids, ++chunk) {
    if (!(mark >> (chunk & 31) & 1u)) continue;  // the same for all threads
    turn ^= 1;
    // A warp has a run of the chunk; lane and k count within it, so the order of ballots is the order of places.
    const int run = warp * (warp_size * ids_each);
    std::int64_t id[ids_each];
#pragma unroll
    for (int k = 0; k < ids_each; ++k) {
      const std::int64_t place = base + run + k * warp_size + lane;
      id[k] = place < rows ? __ldg(ids + place) : -1;
    }
    unsigned found[ids_each];
    int mine = 0;
#pragma unroll
    for (int k = 0; k < ids_each; ++k) {
      // One comparison for both ends, in unsigned numbers: what lies below first_row becomes huge.
      const std::uint64_t row = static_cast<std::uint64_t>(id[k]) - static_cast<std::uint64_t>(first_row);
      found[k] = __ballot_sync(0xffffffffu, row < static_cast<std::uint64_t>(owned));
      mine += __popc(found[k]);
    }
    if (lane == 0) counts[turn][warp] = mine;
    __syncthreads();
    int total = 0, before = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      const int n = counts[turn][w];
      before += w < warp ? n : 0;
      total += n;
    }
    if (total == 0) continue;
#pragma unroll
    for (int k = 0; k < ids_each; ++k) {
      if (found[k] >> lane & 1u) {
        const int row = static_cast<int>(id[k] - first_row);
        hits[before + __popc(found[k] & ((1u << lane) - 1u))] =
            static_cast<Hit>(row << place_bits | (run + k * warp_size + lane));
      }
      before += __popc(found[k]);
    }
    __syncthreads();
    if constexpr (groups == 1) {
      if (!has_column) continue;  // takes part in the next chunk's barriers again
      for (int h = 0; h < total; h += batch) {
        Word words[batch];
#pragma unroll
        for (int j = 0; j < batch; ++j)
          if (h + j < total) words[j] = load(base + (hits[h + j] & (chunk_ids - 1)));
#pragma unroll
        for (int j = 0; j < batch; ++j)
          if (h + j < total) gather(hits[h + j] >> place_bits, words[j]);
      }
    } else {
      // A warp looks at a hit with each lane, and takes those of its group's rows in order.
      for (int h = 0; h < total; h += warp_size) {
        const Hit hit = h + lane < total ? hits[h + lane] : 0;
        unsigned left =
            __ballot_sync(0xffffffffu, h + lane < total && static_cast<int>(hit >> (place_bits + owned_bits)) == group);
        while (left != 0) {
          Word words[batch];
          int rows_of_words[batch];
#pragma unroll
          for (int j = 0; j < batch; ++j) {
            rows_of_words[j] = -1;
            if (left == 0) continue;
            const Hit next = __shfl_sync(0xffffffffu, hit, __ffs(static_cast<int>(left)) - 1);
            left &= left - 1;
            rows_of_words[j] = static_cast<int>(next >> place_bits) & (owned_rows - 1);
            if (has_column) words[j] = load(base + (next & (chunk_ids - 1)));
          }
#pragma unroll
          for (int j = 0; j < batch; ++j)
            if (rows_of_words[j] >= 0 && has_column) gather(rows_of_words[j], words[j]);
        }
      }
    }
  }
  if (!has_column) return;
  put_away();
  for (int row = 0; row < owned_rows && group * owned_rows + row < owned; ++row) {
    Table* const target = dtable + (first_row + group * owned_rows + row) * width + column;
    const bool named = touched >> row & 1u;
    if (!named && accumulate) continue;
    float total[N] = {};
    if (named) {
#pragma unroll
      for (int c = 0; c < N; ++c) total[c] = sums[row][threadIdx.x].v[c];
    }
    if (accumulate) {
      const Pack<Table, N> old = load_pack<N>(target);
#pragma unroll
      for (int c = 0; c < N; ++c) total[c] += to_float(old.v[c]);
    }
    store_pack(target, pack_from<Table>(total));
  }
}

template <class Table, class Dout, int N, int groups>
void backward(cudaStream_t stream, Table* dtable, const Dout* dout, const std::int64_t* ids, std::int64_t rows,
              std::int64_t width, std::int64_t table_rows, bool accumulate, const std::uint32_t* marks) {
  const std::int64_t strips = ceil_div(width, threads / groups * N);
  const std::int64_t owners = ceil_div(table_rows, owned_rows * groups);
  if (strips > INT32_MAX / owners) misused("embedding_backward: a table too large for one launch");
  embedding_backward_kernel<Table, Dout, N, groups><<<static_cast<unsigned>(owners * strips), threads, 0, stream>>>(
      dtable, dout, ids, marks, rows, width, table_rows, static_cast<unsigned>(strips), accumulate);
  check_launch("embedding_backward");
}

// As many groups as there are threads for (8, 2 or 1), and blocks enough for the device all the same.
int group_count(std::int64_t threads_wanted, std::int64_t table_rows) {
  constexpr std::int64_t enough_blocks = 64;
  for (const int groups : {8, 2})
    if (threads_wanted <= threads / groups && ceil_div(table_rows, owned_rows * groups) >= enough_blocks) return groups;
  return 1;
}

// f(TypeTag<A>(), TypeTag<B>()).
template <class F>
void dispatch_two(compute::DType a, compute::DType b, F&& f) {
  dispatch_float(a, [&](auto first) { dispatch_float(b, [&](auto second) { f(first, second); }); });
}

}  // namespace

void launch_embedding_forward(cudaStream_t stream, compute::DType out_type, compute::DType table_type, void* out,
                              const void* table, const std::int64_t* ids, std::int64_t rows, std::int64_t width,
                              std::int64_t table_rows) {
  dispatch_two(out_type, table_type, [&](auto out_tag, auto table_tag) {
    using Out = typename decltype(out_tag)::type;
    using Table = typename decltype(table_tag)::type;
    constexpr int N = std::min(pack_width<Out>, pack_width<Table>);
    const bool wide = width % N == 0 && aligned({out, table});
    const auto launch = wide ? forward<Out, Table, N> : forward<Out, Table, 1>;
    launch(stream, static_cast<Out*>(out), static_cast<const Table*>(table), ids, rows, width, table_rows);
  });
}

void launch_embedding_backward(cudaStream_t stream, compute::DType table_type, compute::DType dout_type, void* dtable,
                               const void* dout, const std::int64_t* ids, std::int64_t rows, std::int64_t width,
                               std::int64_t table_rows, bool accumulate, std::uint32_t* marks) {
  if (width <= 0 || table_rows <= 0) return;
  if (marks) {
    check(cudaMemsetAsync(marks, 0, embedding_marks(rows, table_rows) * sizeof *marks, stream),
          "clear the marks of embedding_backward");
    embedding_mark_kernel<<<grid_size(rows, threads), threads, 0, stream>>>(marks, ids, rows, table_rows);
    check_launch("embedding_mark");
  }
  dispatch_two(table_type, dout_type, [&](auto table_tag, auto dout_tag) {
    using Table = typename decltype(table_tag)::type;
    using Dout = typename decltype(dout_tag)::type;
    constexpr int N = 4;  // more would leave threads without columns at the usual widths
    const bool wide = width % N == 0 && aligned({dtable}, N * sizeof(Table)) && aligned({dout}, N * sizeof(Dout));
    const int groups = group_count(wide ? width / N : threads, table_rows);
    const auto launch = !wide         ? backward<Table, Dout, 1, 1>
                        : groups == 8 ? backward<Table, Dout, N, 8>
                        : groups == 2 ? backward<Table, Dout, N, 2>
                                      : backward<Table, Dout, N, 1>;
    launch(stream, static_cast<Table*>(dtable), static_cast<const Dout*>(dout), ids, rows, width, table_rows,
           accumulate, marks);
  });
}

}  // namespace assay::cuda
