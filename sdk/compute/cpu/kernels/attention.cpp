// Forward of the tiled attention; the backward is in attention_backward.hpp.
//
// A unit of work is a panel of queries of one head. Key tiles are packed once per panel; each block of queries then
// takes the tile's scores, rescales what it has gathered so far to the new row maximum, and adds its share.
#include "attention.hpp"

#include <omp.h>

#include "attention_backward.hpp"
#include "attention_tiles.hpp"

namespace assay::cpu::ASSAY_ISA {

struct ForwardScratch {
  float *q, *out, *row_max, *row_sum;  // of the panel
  float *k_transposed, *v;             // of the key tile
  float* scores;

  static int64_t floats(int64_t panel, const Widths& padded) {
    return (panel + tile_keys) * (padded.keys + padded.values) + 2 * panel + tile_queries * tile_keys;
  }
  ForwardScratch(float* p, int64_t panel, const Widths& padded) {
    q = p, p += panel * padded.keys;
    out = p, p += panel * padded.values;
    row_max = p, p += panel;
    row_sum = p, p += panel;
    k_transposed = p, p += padded.keys * tile_keys;
    v = p, p += tile_keys * padded.values;
    scores = p;
  }
};

// Turns the tile's scores into exp(score - row maximum), and brings the block's running sums to that maximum.
static void softmax_tile(const ScoreTile& tile, const SoftCap& cap, float* scores, float* row_max, float* row_sum,
                         float* out, int64_t padded) {
  const int tile_width = int(round_to_lanes(tile.key_count));
  for (int i = 0; i < tile.rows; ++i, scores += tile_keys) {
    const int width = close_row(scores, tile, i);
    clear(scores, width, tile_width);
    if (width == 0) continue;
    for (int j = 0; cap.caps && j < width; j += lanes) store_vec(scores + j, cap(load_vec(scores + j)).score);
    Vec high = load_vec(scores);
    for (int j = lanes; j < width; j += lanes) high = max_vec(high, load_vec(scores + j));
    const float before = row_max[i];
    const float here = max_lanes(high);
    const float now = here > before ? here : before;
    const Vec shift = splat(now);
    Vec sum{};
    for (int j = 0; j < width; j += lanes) {
      const Vec p = exp2_vec(load_vec(scores + j) - shift);
      store_vec(scores + j, p);
      sum += p;
    }
    if (now == before) {
      row_sum[i] += sum_lanes(sum);
    } else {
      const Vec fade = exp2_vec(splat(before - now));
      row_sum[i] = row_sum[i] * fade[0] + sum_lanes(sum);
      row_max[i] = now;
      for (int64_t c = 0; c < padded; c += lanes)
        store_vec(out + i * padded + c, load_vec(out + i * padded + c) * fade);
    }
  }
}

// After the softmax; its sums, too, cover only what is not dropped.
static void drop_tile(const AttentionArgs& a, const Mask& mask, int64_t batch, int64_t head, const ScoreTile& tile,
                      float* scores) {
  MaskRow<tile_keys> dropout;
  for (int i = 0; i < tile.rows; ++i, scores += tile_keys) {
    const int visible = tile.visible(i);
    dropout.draw(mask, first_element(a, batch, head, tile, i), visible);
    for (int j = 0; j < visible; j += lanes) store_vec(scores + j, dropout.through(mask, j, load_vec(scores + j)));
  }
}

template <class T>
static void forward_panel(const AttentionArgs& a, const Mask& mask, int64_t batch, int64_t head, int64_t first,
                          int64_t rows, const ForwardScratch& s) {
  const Widths padded(a);
  const int64_t key_head = head / group_of(a), key_end = keys_end(a, first, rows);
  const SoftCap cap(a.soft_cap);
  pack_rows(row_of<const T>(a.q, batch, head, first), a.q.time_stride, rows, a.depth, a.scale * log2_e, s.q);
  for (int64_t i = 0; i < rows * padded.values; ++i) s.out[i] = 0.0f;
  for (int64_t i = 0; i < rows; ++i) s.row_max[i] = -__builtin_inff(), s.row_sum[i] = 0.0f;

  for (int64_t key = keys_begin(a, batch, first); key < key_end; key += tile_keys) {
    const int key_count = int(smaller(tile_keys, key_end - key));
    pack_transposed(row_of<const T>(a.k, batch, key_head, key), a.k.time_stride, key_count, a.depth, s.k_transposed,
                    tile_keys);
    pack_rows(row_of<const T>(a.v, batch, key_head, key), a.v.time_stride, key_count, a.value_depth, 1.0f, s.v);
    for (int64_t block = 0; block < rows; block += tile_queries) {
      const ScoreTile tile = tile_of(a, batch, first + block, smaller(tile_queries, rows - block), key, key_count);
      if (tile.is_empty()) continue;
      float* out = s.out + block * padded.values;
      multiply_tiles<Stored::as_is, Into::zero>(
          Tiles{s.q + block * padded.keys, padded.keys, s.k_transposed, tile_keys, s.scores, tile_keys}, tile.rows,
          key_count, [&](int row, int n) {
            return Reach{0, int(a.depth), tile.visible(row + n - 1)};
          });
      softmax_tile(tile, cap, s.scores, s.row_max + block, s.row_sum + block, out, padded.values);
      if (mask.drops()) drop_tile(a, mask, batch, head, tile, s.scores);
      multiply_tiles<Stored::as_is, Into::sum>(Tiles{s.scores, tile_keys, s.v, padded.values, out, padded.values},
                                               tile.rows, int(padded.values), [&](int row, int n) {
                                                 return Reach{0, tile.visible(row + n - 1), int(padded.values)};
                                               });
    }
  }

  float* lse = a.lse + (batch * a.heads + head) * a.queries + first;
  for (int64_t i = 0; i < rows; ++i) {
    float sum = s.row_sum[i], high = s.row_max[i], fade = 1.0f;
    if (a.sinks) {
      const float sink = sink_of(a.sinks, head) * log2_e, before = high;
      high = sink > high ? sink : high;
      fade = exp2_vec(splat(before - high))[0];
      sum = sum * fade + exp2_vec(splat(sink - high))[0];
    }
    const Vec share = splat(s.row_max[i] == -__builtin_inff() ? 0.0f : fade / sum);
    T* out = row_of<T>(a.out, batch, head, first + i);
    each(a.value_depth,
         [&](int64_t c, auto span) { store_span(out + c, load_vec(s.out + i * padded.values + c) * share, span); });
    lse[i] = high * ln_2 + __builtin_logf(sum);
  }
}

static int64_t forward_scratch_bytes(const AttentionArgs& a) {
  return 4 * a.threads * ForwardScratch::floats(panel_rows(a), Widths(a));
}

template <class T>
static void forward_typed(const AttentionArgs& a) {
  const int64_t panel = panel_rows(a);
  const Widths padded(a);
  const int64_t panels = divide_up(a.queries, panel), heads = a.batch * a.heads;
  const Mask mask(a.dropout);
#pragma omp parallel num_threads(a.threads)
  {
    const ForwardScratch scratch(
        static_cast<float*>(a.scratch) + omp_get_thread_num() * ForwardScratch::floats(panel, padded), panel, padded);
    // The last panels see the most keys: the longest work goes first, so that the threads end together.
#pragma omp for schedule(dynamic, 1)
    for (int64_t unit = 0; unit < panels * heads; ++unit) {
      const int64_t first = (panels - 1 - unit / heads) * panel;
      forward_panel<T>(a, mask, unit % heads / a.heads, unit % heads % a.heads, first,
                       smaller(panel, a.queries - first), scratch);
    }
  }
}

static void forward(const AttentionArgs& a) {
  if (a.bf16)
    forward_typed<bf16>(a);
  else
    forward_typed<float>(a);
}

const AttentionKernels attention_kernels = {forward_scratch_bytes, forward, backward_scratch_bytes, backward};

}  // namespace assay::cpu::ASSAY_ISA
