// Finds a tile's group: each block counts anew how many tiles the groups before have. Included by .cu files only.
#pragma once
#include <cstdint>

namespace assay::cuda {

// first[e]: tiles of `height` rows in the groups before e. By the first warp; the block synchronises behind it.
__device__ __forceinline__ void count_row_tiles(const std::int32_t* __restrict__ offsets, int groups, int height,
                                                std::int32_t* first) {
  if (threadIdx.x >= 32) return;
  const int lane = static_cast<int>(threadIdx.x);
  std::int32_t before = 0;
  for (int start = 0; start < groups; start += 32) {
    const int e = start + lane;
    const std::int32_t tiles = e < groups ? (offsets[e + 1] - offsets[e] + height - 1) / height : 0;
    std::int32_t sum = tiles;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::int32_t other = __shfl_up_sync(0xffffffffU, sum, step);
      if (lane >= step) sum += other;
    }
    if (e < groups) first[e] = before + sum - tiles;
    before += __shfl_sync(0xffffffffU, sum, 31);
  }
  if (lane == 0) first[groups] = before;
}

// The group of a row tile, which there is: the last one whose tiles begin at or before it and are not none.
__device__ __forceinline__ int group_of_tile(const std::int32_t* first, int groups, std::int32_t tile) {
  int low = 0, high = groups;  // first[low] <= tile < first[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (first[middle] <= tile)
      low = middle;
    else
      high = middle;
  }
  return low;
}

}  // namespace assay::cuda
