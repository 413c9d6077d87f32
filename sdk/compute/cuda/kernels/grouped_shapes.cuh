// The tiles of grouped products on Hopper's matrix units, and what a block keeps in shared memory. Included by .cu
// files for sm_90a only.
#pragma once
#include "kernels/adamw.cuh"
#include "kernels/grouped_products.hpp"
#include "kernels/grouped_tiles.cuh"

namespace assay::cuda {

constexpr int tile_rows = 128, tile_columns = 256, tile_inner = 64;
constexpr int stages = 3;
constexpr int warpgroup = 128, multiplying_warpgroups = 2, threads = (1 + multiplying_warpgroups) * warpgroup;
constexpr int rows_each = tile_rows / multiplying_warpgroups;
constexpr int box_columns = 64;  // 128 bytes, the width of a swizzled line
constexpr std::uint32_t a_bytes = tile_rows * tile_inner * 2, b_bytes = tile_columns * tile_inner * 2;
constexpr std::uint32_t stage_bytes = a_bytes + b_bytes, block_bytes = box_columns * tile_inner * 2;
// A line of c in shared memory: 512 bytes, and 16 more, so that 8 lines of one column lie in different banks.
constexpr std::uint32_t line_bytes = 512, line_step = line_bytes + 16;
constexpr std::uint32_t lines_bytes = rows_each * line_step;
constexpr std::uint32_t alignment = 1024;  // of the swizzle's atoms
constexpr std::size_t shared_bytes(std::int64_t groups) {
  return alignment + stages * stage_bytes + multiplying_warpgroups * lines_bytes + 2 * stages * sizeof(std::uint64_t) +
         2 * static_cast<std::size_t>(groups + 1) * sizeof(std::int32_t) + sizeof(AdamW);
}
static_assert(shared_bytes(most_groups) <= 227 * 1024);

struct Shape {
  const std::int32_t* offsets;
  void* c;
  const void* bias;
  std::int32_t groups, columns, inner, rows;  // rows: of c in a group, where that is known (weights)
  std::int32_t column_tiles;
  bool accumulate;
  GroupedUpdate update;
};

// What a block keeps of the groups, in shared memory: first_tile is not made of weights, whose groups have equally
// many.
struct Groups {
  const std::int32_t *first_tile, *offsets;
};

struct Tile {
  std::int32_t group, row, column;  // of c: the group's first row and the tile's first row in it, and column
  std::int32_t first, end;          // the group's rows
};

template <GroupedForm form>
__device__ __forceinline__ std::int32_t tiles_of(const Shape& s, const Groups& groups) {
  if constexpr (form == GroupedForm::weights)
    return s.groups * ((s.rows + tile_rows - 1) / tile_rows) * s.column_tiles;
  else
    return groups.first_tile[s.groups] * s.column_tiles;
}

// Tiles of a group follow each other, those of its rows fastest: they share b.
template <GroupedForm form>
__device__ __forceinline__ Tile tile_at(const Shape& s, const Groups& groups, std::int32_t number) {
  Tile tile;
  std::int32_t row_tiles, within;
  if constexpr (form == GroupedForm::weights) {
    row_tiles = (s.rows + tile_rows - 1) / tile_rows;
    const std::int32_t each = row_tiles * s.column_tiles;
    tile.group = number / each;
    within = number % each;
  } else {
    // Tiles of all groups before, over all columns, come first.
    tile.group = group_of_tile(groups.first_tile, s.groups, number / s.column_tiles);
    row_tiles = groups.first_tile[tile.group + 1] - groups.first_tile[tile.group];
    within = number - groups.first_tile[tile.group] * s.column_tiles;
  }
  tile.row = within % row_tiles * tile_rows;
  tile.column = within / row_tiles * tile_columns;
  tile.first = groups.offsets[tile.group];
  tile.end = groups.offsets[tile.group + 1];
  return tile;
}

template <GroupedForm form>
__device__ __forceinline__ std::int32_t steps_of(const Shape& s, const Tile& tile) {
  const std::int32_t inner = form == GroupedForm::weights ? tile.end - tile.first : s.inner;
  return (inner + tile_inner - 1) / tile_inner;
}

// Where a tile of weights begins, in elements from the first matrix.
__device__ __forceinline__ std::int64_t first_element(const Shape& s, const Tile& tile) {
  return (static_cast<std::int64_t>(tile.group) * s.rows + tile.row) * s.columns + tile.column;
}

}  // namespace assay::cuda
