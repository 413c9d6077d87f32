// How much scratch our own kernels want, by shape alone. Plain C++: the backend and the kernels use it, and so
// does the device that stands in for a GPU (compute/planned).
#pragma once
#include <assay/compute/operations/reductions.hpp>
#include <assay/compute/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define ASSAY_ON_BOTH __host__ __device__
#else
#define ASSAY_ON_BOTH
#endif

namespace assay::cuda {

// Backwards of normalisation sum the gradients of their vectors over blocks of rows first. One block for each of the
// 132 multiprocessors of an H200; a constant, so that sums are the same on every device.
inline constexpr std::int64_t most_norm_blocks = 132;

// Floats from one vector's partial sums to the next one's.
ASSAY_ON_BOTH constexpr std::int64_t norm_partials_step(std::int64_t rows, std::int64_t columns) {
  return ((rows < most_norm_blocks ? rows : most_norm_blocks) * columns + 3) / 4 * 4;
}

// Floats of partial sums for one vector of a normalisation.
constexpr std::size_t norm_partial_floats(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(norm_partials_step(rows, columns));
}

inline constexpr int dropout_norm_vectors = 3;  // dweight, dnorm_bias, dbias
constexpr std::size_t dropout_norm_partial_floats(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(dropout_norm_vectors * norm_partials_step(rows, columns));
}

// Of heads that are normalised and turned: teams of threads have a head each, and a block, which is one team at least,
// sums the gradients by the weights of queries and of keys over its teams. Two blocks for each multiprocessor, but at
// least a team for each head.
inline constexpr std::int64_t most_head_norm_blocks = 264;
inline constexpr int head_norm_threads = 512;
constexpr std::int64_t least_head_norm_blocks(std::int64_t heads, std::int64_t teams) {  // `teams`: of a block
  return (heads + teams - 1) / teams;
}
constexpr std::size_t head_norm_partial_floats(std::int64_t heads, std::int64_t head_dim) {
  const std::int64_t blocks = std::max(most_head_norm_blocks, least_head_norm_blocks(heads, 1));
  return static_cast<std::size_t>(blocks * 2 * head_dim);
}

// The gradient of a bias: blocks have tiles of the columns, and strips of the rows.
inline constexpr int bias_lanes = 32, bias_strips = 8;
inline constexpr int bias_rows_under_way = 4;
inline constexpr std::int64_t bias_load_bytes = 16;  // a thread's, which is what a pack has
inline constexpr std::int64_t most_bias_row_blocks = 512;
inline constexpr std::int64_t enough_bias_blocks = 1056;  // eight for each multiprocessor of the largest device
constexpr std::int64_t bias_blocks(compute::DType type, std::int64_t rows, std::int64_t width) {
  if (rows <= 0 || width <= 0) return 0;
  const auto ceil_of = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t tiles =
      ceil_of(width * static_cast<std::int64_t>(compute::size_of(type)), bias_lanes * bias_load_bytes);
  const std::int64_t useful = std::min(most_bias_row_blocks, ceil_of(rows, bias_strips * bias_rows_under_way));
  return std::clamp<std::int64_t>(enough_bias_blocks / tiles, 1, useful);
}

// Largest magnitudes of columns are taken of strips of rows first.
inline constexpr std::int64_t most_column_strips = 32, least_strip_rows = 64;
constexpr std::int64_t column_strips(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / least_strip_rows, 1, most_column_strips);
}
constexpr std::size_t column_partial_floats(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(column_strips(rows) * columns);
}

// The gradient of an embedding: for each few rows of the table, which chunks of ids name one of them. One chunk alone
// is looked at by all.
inline constexpr int embedding_owned_rows = 8, embedding_chunk_ids = 2048;
constexpr std::size_t embedding_marks(std::int64_t ids, std::int64_t table_rows) {  // 32 bits each
  if (ids <= embedding_chunk_ids || table_rows <= 0) return 0;
  return static_cast<std::size_t>((table_rows - 1) / embedding_owned_rows + 1);
}

// Mixtures of experts. A lane has the scores of every 32nd expert in registers, 32 of them at most.
inline constexpr std::int32_t most_experts = 1024;
inline constexpr std::int64_t most_routing_loss_blocks = 264, routing_loss_tokens = 8;  // a warp has a token
constexpr std::int64_t routing_loss_blocks(std::int64_t tokens) {
  return std::clamp<std::int64_t>((tokens + routing_loss_tokens - 1) / routing_loss_tokens, 1,
                                  most_routing_loss_blocks);
}
constexpr std::size_t routing_loss_partials(std::int64_t tokens) {  // doubles
  return static_cast<std::size_t>(2 * routing_loss_blocks(tokens));
}

// Choices are sorted by blocks, each with a run of as many tiles of them; a count for each block and expert.
inline constexpr std::int64_t group_tile_choices = 512, most_group_blocks = 512;
constexpr std::int64_t group_tiles_each(std::int64_t choices) {  // of a block
  return std::max<std::int64_t>((choices - 1) / (group_tile_choices * most_group_blocks) + 1, 1);
}
constexpr std::int64_t group_blocks(std::int64_t choices) {
  return std::max<std::int64_t>((choices - 1) / (group_tile_choices * group_tiles_each(choices)) + 1, 1);
}
constexpr std::size_t group_block_counts(std::int64_t choices, std::int64_t experts) {  // 32 bits each
  return static_cast<std::size_t>(group_blocks(choices) * experts);
}

// Of the norms of matrices: partial sums of each, by their number of elements alone.
constexpr int normalize_parts(std::int64_t elements) {
  constexpr std::int64_t elements_of_a_part = std::int64_t{1} << 14, most = 128;
  const std::int64_t parts = (elements + elements_of_a_part - 1) / elements_of_a_part;
  return static_cast<int>(parts < 1 ? 1 : parts < most ? parts : most);
}
constexpr std::size_t normalize_partials(std::int64_t matrices, std::int64_t elements) {  // doubles
  return static_cast<std::size_t>(matrices) * static_cast<std::size_t>(normalize_parts(elements));
}

inline constexpr int most_reduction_blocks = 528;
inline constexpr std::size_t reduction_scratch_bytes = most_reduction_blocks * sizeof(double);

constexpr std::size_t ordered_sum_partials(std::int64_t count, const compute::SumOptions& options) {  // floats
  if (options.order != compute::SumOrder::chunked || count == 0) return 0;
  return static_cast<std::size_t>((count - 1) / options.chunk + 1);
}

}  // namespace assay::cuda
