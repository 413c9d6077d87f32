// AdamW of a tile by the warpgroups that have its gradient in shared memory. Included by .cu files for sm_90a only.
#pragma once
#include "kernels/grouped_shapes.cuh"
#include "kernels/held.cuh"
#include "kernels/hopper.cuh"

namespace assay::cuda {

// By a multiplying warpgroup: its rows of the tile, by the gradient's lines. A thread has 8 columns of every fourth
// row.
__device__ __forceinline__ void update_piece(const Shape& s, const Tile& tile, const AdamW& shared_rule,
                                             std::uint32_t lines, int which) {
  constexpr int width = 8, row_threads = 32, rows_apart = warpgroup / row_threads, at_once = 6;
  const int thread = static_cast<int>(threadIdx.x) % warpgroup, column = thread % row_threads * width;
  if (column >= s.columns - tile.column) return;
  const AdamW rule = shared_rule;
  const int first_row = thread / row_threads, rows = min(rows_each, s.rows - tile.row - which * rows_each);
  const std::int64_t first =
      first_element(s, tile) + static_cast<std::int64_t>(which * rows_each + first_row) * s.columns + column;
  const std::int64_t apart = static_cast<std::int64_t>(rows_apart) * s.columns;
  bf16* parameters = static_cast<bf16*>(s.update.parameter) + first;
  bf16* firsts = static_cast<bf16*>(s.update.first) + first;
  bf16* seconds = static_cast<bf16*>(s.update.second) + first;
  bf16* gradients = static_cast<bf16*>(s.c ? s.c : reinterpret_cast<void*>(*s.update.gradient_place));
  const bool shows = gradients != nullptr;
  gradients += first;
  lines += static_cast<std::uint32_t>(first_row * static_cast<int>(line_step) + column * 2);
  for (int row = first_row; row < rows; row += at_once * rows_apart) {
    Held<bf16, width> p[at_once], m[at_once], v[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (row + i * rows_apart >= rows) continue;
      p[i] = hold<width, Cache::streaming>(parameters + i * apart);
      m[i] = hold<width, Cache::streaming>(firsts + i * apart);
      v[i] = hold<width, Cache::streaming>(seconds + i * apart);
    }
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (row + i * rows_apart >= rows) continue;
      Held<bf16, width> gradient;
      hopper::load_words(lines + static_cast<std::uint32_t>(i * rows_apart) * line_step, gradient.word);
      if (shows) store<Cache::streaming>(gradients + i * apart, gradient);
      float g[width], parameter[width], one[width], two[width];
      unpack(gradient, g), unpack(p[i], parameter), unpack(m[i], one), unpack(v[i], two);
#pragma unroll
      for (int e = 0; e < width; ++e) rule.apply_to_bf16(g[e], parameter[e], one[e], two[e]);
      store<Cache::streaming>(parameters + i * apart, held_from<bf16>(parameter));
      store<Cache::streaming>(firsts + i * apart, held_from<bf16>(one));
      store<Cache::streaming>(seconds + i * apart, held_from<bf16>(two));
    }
    parameters += at_once * apart, firsts += at_once * apart, seconds += at_once * apart;
    gradients += at_once * apart;
    lines += static_cast<std::uint32_t>(at_once * rows_apart) * line_step;
  }
}

}  // namespace assay::cuda
