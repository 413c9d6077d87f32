// What the forward and the backward of attention share: tile sizes, the causal mask, addresses. Kernel files only.
#pragma once
#include "attention.hpp"
#include "dropout_mask.hpp"
#include "tile_gemm.hpp"

namespace assay::cpu::ASSAY_ISA {

// Measured: smaller tiles cost packing and row bookkeeping, larger ones gain nothing.
constexpr int tile_queries = 96;  // a multiple of block_rows and of lanes
constexpr int tile_keys = 128;
// Scores are kept in powers of two (q is packed times scale * log2(e)), since 2^x is cheaper than e^x.
constexpr float log2_e = 1.44269504f;
constexpr float ln_2 = 0.69314718f;

ASSAY_INLINE int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
ASSAY_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
ASSAY_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Queries per unit of work: as many as share a packed key tile while their rows stay in the second-level cache, fewer
// where the threads would run out of units.
static int64_t panel_rows(const AttentionArgs& a) {
  const int64_t in_cache = 32768 / round_to_lanes(larger(a.depth, a.value_depth)) / tile_queries;
  int64_t blocks = larger(1, smaller(in_cache, divide_up(a.queries, tile_queries)));
  while (blocks > 1 && a.batch * a.heads * divide_up(a.queries, blocks * tile_queries) < 4 * a.threads)
    blocks = divide_up(blocks, 2);
  return blocks * tile_queries;
}

// The columns of packed rows: whole vectors.
struct Widths {
  int64_t keys, values;  // of queries and keys; of values and the result

  explicit Widths(const AttentionArgs& a) : keys(round_to_lanes(a.depth)), values(round_to_lanes(a.value_depth)) {}
};

// How many heads of queries read one head of keys: query head h reads key head h / group_of(a).
ASSAY_INLINE int64_t group_of(const AttentionArgs& a) { return a.key_heads > 0 ? a.heads / a.key_heads : 1; }

template <class T>
ASSAY_INLINE T* row_of(const AttentionView& view, int64_t batch, int64_t head, int64_t time) {
  return static_cast<T*>(view.data) + batch * view.batch_stride + time * view.time_stride + head * view.head_stride;
}

// One tile of the scores: queries from first_query on, keys [first_key, first_key + key_count).
struct ScoreTile {
  int64_t first_query, first_key;
  int rows, key_count;
  bool causal;
  int64_t offset;             // keys - queries
  int64_t window;             // 0: no bound
  const int32_t* first_keys;  // of the tile's rows; null: no bound

  // How many of the tile's keys row i sees, where none is hidden: always its first ones.
  int visible(int i) const {
    if (!causal) return key_count;
    const int64_t n = first_query + i + offset + 1 - first_key;
    return int(n < 0 ? 0 : n > key_count ? key_count : n);
  }
  // How many of the tile's first keys lie before row i's window, or before its document.
  int hidden(int i) const {
    int64_t n = window == 0 ? 0 : first_query + i + offset + 1 - window - first_key;
    if (first_keys && first_keys[i] - first_key > n) n = first_keys[i] - first_key;
    return int(n < 0 ? 0 : n > key_count ? key_count : n);
  }
  // Whether no row sees a key: the last row sees the most of what causal hides, the first one of what lies behind.
  bool is_empty() const { return visible(rows - 1) == 0 || hidden(0) == key_count; }
  // The first row that sees key j of the tile.
  int first_row_of_key(int j) const {
    if (!causal) return 0;
    const int64_t i = first_key + j - offset - first_query;
    return int(i < 0 ? 0 : i > rows ? rows : i);
  }
};

// The first keys of a sequence's queries, from `first` on; null: no bound.
ASSAY_INLINE const int32_t* first_keys_of(const AttentionArgs& a, int64_t batch, int64_t first) {
  return a.first_keys ? a.first_keys + batch * a.queries + first : nullptr;
}

// The tile of rows [first_query, first_query + rows) and keys [first_key, first_key + key_count) of a sequence.
ASSAY_INLINE ScoreTile tile_of(const AttentionArgs& a, int64_t batch, int64_t first_query, int64_t rows,
                               int64_t first_key, int key_count) {
  return {first_query, first_key,          int(rows), key_count,
          a.causal,    a.keys - a.queries, a.window,  first_keys_of(a, batch, first_query)};
}

// Of a sequence's queries from `first` on: where their first tile of keys begins, and behind which key they see none.
ASSAY_INLINE int64_t keys_begin(const AttentionArgs& a, int64_t batch, int64_t first) {
  const int64_t of_window = a.window == 0 ? 0 : first + a.keys - a.queries + 1 - a.window;
  const int64_t of_document = a.first_keys ? *first_keys_of(a, batch, first) : 0;
  return larger(0, larger(of_window, of_document)) / tile_keys * tile_keys;
}
ASSAY_INLINE int64_t keys_end(const AttentionArgs& a, int64_t first, int64_t rows) {
  return a.causal ? smaller(a.keys, first + rows + a.keys - a.queries) : a.keys;
}
// Of a sequence's keys up to `end`: behind which query none sees them.
ASSAY_INLINE int64_t queries_end(const AttentionArgs& a, int64_t batch, int64_t end) {
  int64_t last = a.queries;
  if (a.window > 0) last = larger(0, smaller(last, end - 1 + a.window - (a.keys - a.queries)));
  if (!a.first_keys) return last;
  int64_t seeing = 0;  // by halves: the queries whose first key is one of them, or before
  while (seeing < last) {
    const int64_t middle = seeing + (last - seeing) / 2;
    if (*first_keys_of(a, batch, middle) < end)
      seeing = middle + 1;
    else
      last = middle;
  }
  return seeing;
}

// What a cap makes of scores in powers of two. A hidden key's, -infinity, stays.
struct SoftCap {
  Vec cap, inverse;
  bool caps;

  explicit SoftCap(float soft_cap)
      : cap(splat(soft_cap * log2_e)), inverse(splat(soft_cap > 0 ? ln_2 / soft_cap : 0.0f)), caps(soft_cap > 0) {}
  struct Capped {
    Vec score, slope;
  };
  Capped operator()(Vec x) const {
    const Vec t = tanh_vec(x * inverse);
    return {x < -3e38f ? x : cap * t, 1.0f - t * t};
  }
};

// Which elements of the matrix of all probabilities, [batch, heads, queries, keys], a row of a tile holds.
ASSAY_INLINE int64_t first_element(const AttentionArgs& a, int64_t batch, int64_t head, const ScoreTile& tile,
                                   int row) {
  return ((batch * a.heads + head) * a.queries + tile.first_query + row) * a.keys + tile.first_key;
}

// Makes whole vectors of a row of scores: what lies past `visible` up to a whole vector becomes `rest`.
ASSAY_INLINE int close_row(float* row, int visible, float rest) {
  const int whole = visible / lanes * lanes;
  if (whole == visible) return visible;
  store_vec(row + whole, only(load_vec(row + whole), Part{visible - whole}, rest));
  return whole + lanes;
}
// The same of a tile's row, with -infinity for the scores of all keys that its query does not see.
ASSAY_INLINE int close_row(float* row, const ScoreTile& tile, int i) {
  const int width = close_row(row, tile.visible(i), -__builtin_inff());
  const int hidden = tile.hidden(i);
  for (int j = 0; j < hidden && j < width; ++j) row[j] = -__builtin_inff();
  return hidden < tile.visible(i) ? width : 0;
}
ASSAY_INLINE void clear(float* row, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) row[i] = 0.0f;
}

}  // namespace assay::cpu::ASSAY_ISA
