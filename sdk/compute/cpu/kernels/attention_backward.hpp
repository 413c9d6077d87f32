// Backward of the tiled attention. Included by attention.cpp alone.
//
// With p = exp(scale q k - lse) and delta = rowsum(dout * out):
//   dv = p^T dout,  ds = p * (dout v^T - delta),  dq = scale ds k,  dk = scale ds^T q.
// A soft cap puts the slope of its tanh on ds. A head's sink is in lse, and takes its share of delta.
// Dropout puts its mask on the p of dv and on dout v^T; delta is as before, since out has the mask, too.
// Where a group of heads reads the same keys, dk and dv are sums over its heads, one after the other.
// Whole groups: one pass over the key tiles makes all three gradients. Where groups are too few for the threads (or too
// long for the scratch), dk and dv are made per key tile and dq per panel of queries, each computing p anew. Both ways
// add the same numbers in the same order, so the results are the same to the bit.
#pragma once
#include <omp.h>

#include "attention_tiles.hpp"

namespace assay::cpu::ASSAY_ISA {

constexpr int64_t whole_group_limit_floats = int64_t(8) << 20;  // 32 MiB per thread

struct BackwardScratch {
  float *q, *dout, *dq, *lse, *delta;                // of the panel; lse in powers of two
  float *k, *k_transposed, *v_transposed, *dk, *dv;  // of the key tile
  float *p, *ds;                                     // of the score tile

  static int64_t floats(int64_t panel, const Widths& padded) {
    return panel * (2 * padded.keys + padded.values + 2) + tile_keys * (3 * padded.keys + 2 * padded.values) +
           2 * tile_queries * tile_keys;
  }
  BackwardScratch(float* at, int64_t panel, const Widths& padded) {
    q = at, at += panel * padded.keys;
    dout = at, at += panel * padded.values;
    dq = at, at += panel * padded.keys;
    lse = at, at += panel;
    delta = at, at += panel;
    k = at, at += tile_keys * padded.keys;
    k_transposed = at, at += padded.keys * tile_keys;
    v_transposed = at, at += padded.values * tile_keys;
    dk = at, at += tile_keys * padded.keys;
    dv = at, at += tile_keys * padded.values;
    p = at, at += tile_queries * tile_keys;
    ds = at;
  }
  // With the panel of another head of the group, `rows` further on.
  BackwardScratch panel_at(int64_t rows, const Widths& padded) const {
    BackwardScratch other = *this;
    other.q += rows * padded.keys, other.dout += rows * padded.values, other.dq += rows * padded.keys;
    other.lse += rows, other.delta += rows;
    return other;
  }
};

enum class Gradients { all, of_queries, of_keys };

template <class T>
struct HeadBackward {
  const AttentionArgs& a;
  BackwardScratch s;
  const Mask& mask;
  int64_t batch, head;  // of queries
  Widths padded{a};
  int64_t offset = a.keys - a.queries;
  int64_t group = group_of(a), key_head = head / group;

  // Of a group's first head: another one, whose panel has `rows` rows and lies behind the panels of those before it.
  HeadBackward member(int64_t which, int64_t rows) const {
    return {a, s.panel_at(which * rows, padded), mask, batch, head + which};
  }

  void pack_panel(int64_t first, int64_t rows) const {
    pack_rows(row_of<const T>(a.q, batch, head, first), a.q.time_stride, rows, a.depth, a.scale * log2_e, s.q);
    pack_rows(row_of<const T>(a.dout, batch, head, first), a.dout.time_stride, rows, a.value_depth, 1.0f, s.dout);
    const float* lse = a.lse + (batch * a.heads + head) * a.queries + first;
    for (int64_t i = 0; i < rows; ++i) {
      const T* out = row_of<const T>(a.out, batch, head, first + i);
      s.delta[i] = sum_each(a.value_depth, [&](int64_t c, auto span) {
        return load_span(out + c, span) * load_vec(s.dout + i * padded.values + c);
      });
      s.lse[i] = lse[i] * log2_e;
    }
  }
  int pack_keys(int64_t first) const {
    const int count = int(smaller(tile_keys, a.keys - first));
    const T* k = row_of<const T>(a.k, batch, key_head, first);
    pack_rows(k, a.k.time_stride, count, a.depth, 1.0f, s.k);
    pack_transposed(k, a.k.time_stride, count, a.depth, s.k_transposed, tile_keys);
    pack_transposed(row_of<const T>(a.v, batch, key_head, first), a.v.time_stride, count, a.value_depth, s.v_transposed,
                    tile_keys);
    return count;
  }
  // Rows of `depth` columns; those of `from` are whole vectors.
  void write(const AttentionView& to, int64_t depth, int64_t to_head, int64_t first, int64_t rows, float factor,
             const float* from) const {
    const int64_t width = round_to_lanes(depth);
    for (int64_t i = 0; i < rows; ++i) {
      T* row = row_of<T>(to, batch, to_head, first + i);
      each(depth, [&](int64_t c, auto span) { store_span(row + c, factor * load_vec(from + i * width + c), span); });
    }
  }

  // With dropout, dp goes through the mask before ds is made of it, and p after that.
  template <bool dropped>
  void score_rows(const ScoreTile& tile, int64_t block) const {
    const int tile_width = int(round_to_lanes(tile.key_count));
    const SoftCap cap(a.soft_cap);
    for (int i = 0; i < tile.rows; ++i) {
      float* p = s.p + i * tile_keys;
      float* ds = s.ds + i * tile_keys;
      const int width = close_row(p, tile, i);
      const Vec lse = splat(s.lse[block + i]), delta = splat(s.delta[block + i]);
      MaskRow<tile_keys> dropout;
      if constexpr (dropped) dropout.draw(mask, first_element(a, batch, head, tile, i), tile.visible(i));
      const auto through = [&](int j, Vec x) { return dropped ? dropout.through(mask, j, x) : x; };
      for (int j = 0; j < width; j += lanes) {
        Vec score = load_vec(p + j), slope = splat(1.0f);
        if (cap.caps) {
          const SoftCap::Capped capped = cap(score);
          score = capped.score, slope = capped.slope;
        }
        const Vec probability = exp2_vec(score - lse);
        store_vec(p + j, through(j, probability));
        store_vec(ds + j, probability * (through(j, load_vec(ds + j)) - delta) * slope);
      }
      clear(p, width, tile_width);
      clear(ds, width, tile_width);
    }
  }

  // Adds one tile's share to the panel's dq and to the key tile's dk and dv.
  template <Gradients wanted>
  void add_tile(const ScoreTile& tile, int64_t block) const {
    const float* q = s.q + block * padded.keys;
    const float* dout = s.dout + block * padded.values;
    const int width = int(padded.keys), value_width = int(padded.values);
    const auto over = [&](int64_t depth) {
      return [&tile, depth](int row, int n) { return Reach{0, int(depth), tile.visible(row + n - 1)}; };
    };
    multiply_tiles<Stored::as_is, Into::zero>(Tiles{q, width, s.k_transposed, tile_keys, s.p, tile_keys}, tile.rows,
                                              tile.key_count, over(a.depth));
    multiply_tiles<Stored::as_is, Into::zero>(Tiles{dout, value_width, s.v_transposed, tile_keys, s.ds, tile_keys},
                                              tile.rows, tile.key_count, over(a.value_depth));
    mask.drops() ? score_rows<true>(tile, block) : score_rows<false>(tile, block);
    if constexpr (wanted != Gradients::of_queries) {
      const auto queries = [&tile](int columns) {
        return [&tile, columns](int key, int) { return Reach{tile.first_row_of_key(key), tile.rows, columns}; };
      };
      multiply_tiles<Stored::transposed, Into::sum>(Tiles{s.p, tile_keys, dout, value_width, s.dv, value_width},
                                                    tile.key_count, value_width, queries(value_width));
      multiply_tiles<Stored::transposed, Into::sum>(Tiles{s.ds, tile_keys, q, width, s.dk, width}, tile.key_count,
                                                    width, queries(width));
    }
    if constexpr (wanted != Gradients::of_keys) {
      multiply_tiles<Stored::as_is, Into::sum>(Tiles{s.ds, tile_keys, s.k, width, s.dq + block * width, width},
                                               tile.rows, width, [&](int row, int n) {
                                                 return Reach{0, tile.visible(row + n - 1), width};
                                               });
    }
  }

  template <Gradients wanted>
  void add_panel(int64_t first, int64_t rows, int64_t key, int key_count) const {
    int64_t block = a.causal ? larger(0, key - offset - first) / tile_queries * tile_queries : 0;
    for (; block < rows; block += tile_queries) {
      const ScoreTile tile = tile_of(a, batch, first + block, smaller(tile_queries, rows - block), key, key_count);
      if (!tile.is_empty()) add_tile<wanted>(tile, block);
    }
  }
  void clear_key_gradients() const {
    clear(s.dk, 0, tile_keys * padded.keys);
    clear(s.dv, 0, tile_keys * padded.values);
  }
  void write_key_gradients(int64_t key, int key_count) const {
    write(a.dk, a.depth, key_head, key, key_count, ln_2, s.dk);  // q was packed times scale * log2(e)
    write(a.dv, a.value_depth, key_head, key, key_count, 1.0f, s.dv);
  }

  // All keys against one panel of queries.
  void panel(int64_t first, int64_t rows) const {
    pack_panel(first, rows);
    clear(s.dq, 0, rows * padded.keys);
    const int64_t key_end = keys_end(a, first, rows);
    for (int64_t key = keys_begin(a, batch, first); key < key_end; key += tile_keys)
      add_panel<Gradients::of_queries>(first, rows, key, pack_keys(key));
    write(a.dq, a.depth, head, first, rows, a.scale, s.dq);
  }
  // Of a group's first head: all keys against all queries of the group.
  void whole_group(int64_t panel_size) const {
    for (int64_t g = 0; g < group; ++g) {
      const HeadBackward of = member(g, panel_size);
      of.pack_panel(0, a.queries);
      clear(of.s.dq, 0, a.queries * padded.keys);
    }
    for (int64_t key = 0; key < a.keys; key += tile_keys) {
      const int key_count = pack_keys(key);
      clear_key_gradients();
      for (int64_t g = 0; g < group; ++g)
        member(g, panel_size).template add_panel<Gradients::all>(0, a.queries, key, key_count);
      write_key_gradients(key, key_count);
    }
    for (int64_t g = 0; g < group; ++g) {
      const HeadBackward of = member(g, panel_size);
      of.write(a.dq, a.depth, of.head, 0, a.queries, a.scale, of.s.dq);
    }
  }
  // Of a group's first head: all queries of the group against one tile of keys.
  void keys(int64_t key, int64_t panel_size) const {
    const int key_count = pack_keys(key);
    clear_key_gradients();
    const int64_t start = a.causal ? larger(0, key - offset) / panel_size * panel_size : 0;
    const int64_t end = queries_end(a, batch, key + key_count);
    for (int64_t g = 0; g < group; ++g)
      for (int64_t first = start; first < end; first += panel_size) {
        const HeadBackward of = member(g, 0);  // one after the other, in one panel
        const int64_t rows = smaller(panel_size, a.queries - first);
        of.pack_panel(first, rows);
        of.template add_panel<Gradients::of_keys>(first, rows, key, key_count);
      }
    write_key_gradients(key, key_count);
  }
};

// Twice two of five products are computed in the split form: it pays where it fills the threads half again as well.
static bool by_whole_groups(const AttentionArgs& a) {
  const int64_t groups = a.batch * a.key_heads, rounds = divide_up(groups, a.threads);
  return 3 * groups >= 2 * a.threads * rounds &&
         BackwardScratch::floats(group_of(a) * a.queries, Widths(a)) <= whole_group_limit_floats;
}
static int64_t backward_panel(const AttentionArgs& a) {
  return by_whole_groups(a) ? divide_up(a.queries, tile_queries) * tile_queries : panel_rows(a);
}
// Panels that lie in the scratch at a time.
static int64_t backward_panels(const AttentionArgs& a) { return by_whole_groups(a) ? group_of(a) : 1; }
static int64_t backward_scratch_floats(const AttentionArgs& a) {  // of a thread
  return BackwardScratch::floats(backward_panels(a) * backward_panel(a), Widths(a));
}
static int64_t backward_scratch_bytes(const AttentionArgs& a) { return 4 * a.threads * backward_scratch_floats(a); }

template <class T>
static void backward_typed(const AttentionArgs& a) {
  const int64_t size = backward_panel(a);
  const int64_t heads = a.batch * a.heads, groups = a.batch * a.key_heads, group = group_of(a);
  const int64_t panels = divide_up(a.queries, size), tiles = divide_up(a.keys, tile_keys);
  const bool whole = by_whole_groups(a);
  const Mask mask(a.dropout);
#pragma omp parallel num_threads(a.threads)
  {
    const BackwardScratch scratch(static_cast<float*>(a.scratch) + omp_get_thread_num() * backward_scratch_floats(a),
                                  backward_panels(a) * size, Widths(a));
    const auto head = [&](int64_t unit) {
      return HeadBackward<T>{a, scratch, mask, unit % heads / a.heads, unit % heads % a.heads};
    };
    const auto first_head = [&](int64_t unit) { return head(unit % groups * group); };
    if (whole) {
#pragma omp for schedule(dynamic, 1)
      for (int64_t unit = 0; unit < groups; ++unit) first_head(unit).whole_group(size);
    } else {
      // Longest first: the first keys are seen by the most queries, the last queries see the most keys.
#pragma omp for schedule(dynamic, 1) nowait
      for (int64_t unit = 0; unit < tiles * groups; ++unit) first_head(unit).keys(unit / groups * tile_keys, size);
#pragma omp for schedule(dynamic, 1)
      for (int64_t unit = 0; unit < panels * heads; ++unit) {
        const int64_t first = (panels - 1 - unit / heads) * size;
        head(unit).panel(first, smaller(size, a.queries - first));
      }
    }
  }
}

// dsinks, by whole heads: the sum of each has one owner.
template <class T>
static void sink_gradients(const AttentionArgs& a) {
#pragma omp parallel for num_threads(a.threads) schedule(static)
  for (int64_t head = 0; head < a.heads; ++head) {
    double sum = 0;
    for (int64_t batch = 0; batch < a.batch; ++batch)
      for (int64_t i = 0; i < a.queries; ++i) {
        const T* out = row_of<const T>(a.out, batch, head, i);
        const T* dout = row_of<const T>(a.dout, batch, head, i);
        const float delta = sum_each(
            a.value_depth, [&](int64_t c, auto span) { return load_span(out + c, span) * load_span(dout + c, span); });
        const float lse = a.lse[(batch * a.heads + head) * a.queries + i];
        sum -= double(exp2_vec(splat((sink_of(a.sinks, head) - lse) * log2_e))[0]) * double(delta);
      }
    store_sink_gradient(a.dsinks, head, sum, a.accumulate);
  }
}

static void backward(const AttentionArgs& a) {
  if (a.sinks) a.bf16 ? sink_gradients<bf16>(a) : sink_gradients<float>(a);  // gradients may lie where inputs do
  if (a.bf16)
    backward_typed<bf16>(a);
  else
    backward_typed<float>(a);
}

}  // namespace assay::cpu::ASSAY_ISA
