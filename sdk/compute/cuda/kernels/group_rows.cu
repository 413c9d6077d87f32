// Sorts choices by expert, in their order. Blocks have runs of them and count them by expert; warps add up the counts
// of all blocks, an expert each; and blocks put their choices where those of earlier blocks and experts end. Integers
// alone, so that the order in which a block counts does not matter.
#include "cuda_error.hpp"
#include "kernels/experts.hpp"
#include "kernels/types.cuh"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

constexpr int threads = 256, warps = threads / warp_size;
constexpr int tile = group_tile_choices;
constexpr int each = tile / threads;  // choices of a thread in a tile
constexpr int most_blocks = most_group_blocks;
constexpr unsigned all_lanes = 0xffffffffU;
static_assert(tile == each * threads && most_blocks % warp_size == 0 && most_experts <= 4 * threads);

__device__ __forceinline__ bool is_group(std::int32_t e, std::int32_t groups) {
  return static_cast<std::uint32_t>(e) < static_cast<std::uint32_t>(groups);
}

// The choices of this block.
struct Run {
  std::int64_t first, end;
  __device__ __forceinline__ Run(std::int64_t choices, int tiles_each) {
    const std::int64_t length = std::int64_t{tiles_each} * tile;
    first = blockIdx.x * length;
    end = min(first + length, static_cast<std::int64_t>(choices));
  }
};

// block_counts is [groups, blocks]. The sources that no choice will take are left at -1.
__global__ void __launch_bounds__(threads) group_rows_count_kernel(const GroupRowsArgs a, int tiles_each) {
  extern __shared__ std::int32_t shared[];  // [groups]
  for (int e = static_cast<int>(threadIdx.x); e < a.groups; e += threads) shared[e] = 0;
  __syncthreads();
  const Run run(a.choices, tiles_each);
#pragma unroll 4
  for (std::int64_t i = run.first + threadIdx.x; i < run.end; i += threads) {
    const std::int32_t e = a.experts[i];
    a.sources[i] = -1;
    if (is_group(e, a.groups)) atomicAdd(shared + e, 1);
  }
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < a.groups; e += threads)
    a.block_counts[std::int64_t{e} * gridDim.x + blockIdx.x] = shared[e];
}

// The sum over the lanes up to this one.
__device__ __forceinline__ std::int32_t sum_so_far(std::int32_t x) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
#pragma unroll
  for (int offset = 1; offset < warp_size; offset *= 2) {
    const std::int32_t before = __shfl_up_sync(all_lanes, x, offset);
    if (lane >= offset) x += before;
  }
  return x;
}

// block_counts become what the blocks before have of the group.
__global__ void __launch_bounds__(threads) group_rows_sum_kernel(const GroupRowsArgs a, int blocks) {
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  const int e = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / warp_size;
  if (e >= a.groups) return;
  std::int32_t* const of_blocks = a.block_counts + std::int64_t{e} * blocks;
  std::int32_t count[most_blocks / warp_size];  // loaded at once
#pragma unroll
  for (int i = 0; i < most_blocks / warp_size; ++i) {
    const int b = i * warp_size + lane;
    count[i] = b < blocks ? of_blocks[b] : 0;
  }
  std::int32_t before = 0;
#pragma unroll
  for (int i = 0; i < most_blocks / warp_size; ++i) {
    if (i * warp_size >= blocks) break;
    const int b = i * warp_size + lane;
    const std::int32_t sum = sum_so_far(count[i]);
    if (b < blocks) of_blocks[b] = before + sum - count[i];
    before += __shfl_sync(all_lanes, sum, warp_size - 1);
  }
  if (lane == 0) a.counts[e] = before;
}

// starts[e] = the sum of the counts before e, of [groups]; block 0 writes the offsets.
__device__ __forceinline__ void find_starts(const GroupRowsArgs& a, std::int32_t* starts) {
  __shared__ std::int32_t of_warps[warps];
  constexpr int most = most_experts / threads;  // adjacent groups for each thread
  const int first = static_cast<int>(threadIdx.x) * most;
  std::int32_t count[most], mine = 0;
#pragma unroll
  for (int i = 0; i < most; ++i) {
    count[i] = first + i < a.groups ? a.counts[first + i] : 0;
    mine += count[i];
  }
  const std::int32_t sum = sum_so_far(mine);
  if (threadIdx.x % warp_size == warp_size - 1) of_warps[threadIdx.x / warp_size] = sum;
  __syncthreads();
  std::int32_t before = sum - mine;
  for (int w = 0; w < static_cast<int>(threadIdx.x) / warp_size; ++w) before += of_warps[w];
#pragma unroll
  for (int i = 0; i < most; ++i) {
    if (first + i >= a.groups) break;
    starts[first + i] = before;
    if (blockIdx.x == 0) a.offsets[first + i] = before;
    before += count[i];
    if (blockIdx.x == 0 && first + i == a.groups - 1) a.offsets[a.groups] = before;
  }
}

// A warp has a run of each tile, and its lanes take adjacent choices; the order of warps, turns and lanes is that of
// the choices.
__global__ void __launch_bounds__(threads) group_rows_place_kernel(const GroupRowsArgs a, int tiles_each) {
  extern __shared__ std::int32_t shared[];
  std::int32_t* const next = shared;                 // [groups]: the row of the next choice
  std::int32_t* const of_warps = shared + a.groups;  // [warps, groups]: counts, then rows
  const int lane = static_cast<int>(threadIdx.x) % warp_size, warp = static_cast<int>(threadIdx.x) / warp_size;
  std::int32_t* const mine = of_warps + warp * a.groups;

  find_starts(a, next);
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < a.groups; e += threads)
    next[e] += a.block_counts[std::int64_t{e} * gridDim.x + blockIdx.x];

  const Run run(a.choices, tiles_each);
  for (std::int64_t base = run.first; base < run.end; base += tile) {
    const std::int64_t first = base + warp * (each * warp_size) + lane;
    std::int32_t group[each], rank[each];
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const std::int64_t i = first + k * warp_size;
      group[k] = i < run.end ? a.experts[i] : -1;
      if (!is_group(group[k], a.groups)) group[k] = -1;
    }
    for (int e = lane; e < a.groups; e += warp_size) mine[e] = 0;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const unsigned same = __match_any_sync(all_lanes, group[k]);
      const int before = __popc(same & ((1U << lane) - 1U));
      const std::int32_t earlier = group[k] >= 0 ? mine[group[k]] : 0;
      rank[k] = earlier + before;
      __syncwarp();  // all have read
      if (group[k] >= 0 && before == 0) mine[group[k]] = earlier + __popc(same);
      __syncwarp();
    }
    __syncthreads();
    for (int e = static_cast<int>(threadIdx.x); e < a.groups; e += threads) {
      std::int32_t row = next[e];
#pragma unroll
      for (int w = 0; w < warps; ++w) {
        const std::int32_t count = of_warps[w * a.groups + e];
        of_warps[w * a.groups + e] = row;
        row += count;
      }
      next[e] = row;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const std::int64_t i = first + k * warp_size;
      if (i >= run.end) continue;
      const std::int32_t place = group[k] >= 0 ? mine[group[k]] + rank[k] : -1;
      a.places[i] = place;
      if (place >= 0) a.sources[place] = static_cast<std::int32_t>(i);
    }
    __syncwarp();  // all have read before the next tile's zeros
  }
}

}  // namespace

void launch_group_rows(cudaStream_t stream, const GroupRowsArgs& a) {
  if (a.groups > most_experts) misused("more groups of rows than a block has shared memory for");
  const auto blocks = static_cast<unsigned>(group_blocks(a.choices));
  const auto tiles_each = static_cast<int>(group_tiles_each(a.choices));
  const std::size_t row = static_cast<std::size_t>(a.groups) * sizeof(std::int32_t);
  group_rows_count_kernel<<<blocks, threads, row, stream>>>(a, tiles_each);
  check_launch("group_rows");
  group_rows_sum_kernel<<<grid_size(a.groups, warps), threads, 0, stream>>>(a, static_cast<int>(blocks));
  check_launch("group_rows");
  group_rows_place_kernel<<<blocks, threads, row*(1 + warps), stream>>>(a, tiles_each);
  check_launch("group_rows");
}

}  // namespace assay::cuda
