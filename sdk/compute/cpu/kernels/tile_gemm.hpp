// Small matrix products between packed fp32 tiles that lie in cache: what the attention kernels are made of.
// c (+)= a b with c [rows, columns], b [k, columns] row-major and padded to whole vectors; a [rows, k] row-major, or
// stored as its transpose [k, rows]. Included by kernel files only.
//
// A block of 6 rows by a few vectors of c stays in registers: each step of k loads one row of b and multiplies it by
// six broadcast numbers of a. Every element of c is the same sum in the same order whatever block it falls in.
#pragma once
#include "vec.hpp"

namespace assay::cpu::ASSAY_ISA {

constexpr int block_rows = 6;
constexpr int block_vectors = lanes == 16 ? 4 : 2;  // 24 of 32 registers, or 12 of 16
constexpr int block_columns = block_vectors * lanes;

enum class Stored { as_is, transposed };
enum class Into { zero, sum };

// What a block of rows needs of the product: steps [k_begin, k_end) and the first `columns` of c. A causal mask makes
// this less than all.
struct Reach {
  int k_begin, k_end, columns;
};

struct Tiles {
  const float* a;
  int64_t a_stride;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
};

template <int rows, int vectors, Stored a_stored, Into into>
__attribute__((noinline)) static void multiply_block(const Tiles& t, int row, int column, int k_begin, int k_end) {
  Vec sum[rows][vectors];
  float* c = t.c + row * t.c_stride + column;
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sum[r][v] = into == Into::sum ? load_vec(c + r * t.c_stride + v * lanes) : Vec{};
  const int64_t row_step = a_stored == Stored::as_is ? t.a_stride : 1;
  const int64_t k_step = a_stored == Stored::as_is ? 1 : t.a_stride;
  const float* a = t.a + row * row_step + k_begin * k_step;
  const float* b = t.b + k_begin * t.b_stride + column;
  for (int k = k_begin; k < k_end; ++k, a += k_step, b += t.b_stride) {
    Vec b_row[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) b_row[v] = load_vec(b + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec x = splat(a[r * row_step]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sum[r][v] += x * b_row[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) store_vec(c + r * t.c_stride + v * lanes, sum[r][v]);
}

template <int rows, Stored a_stored, Into into>
ASSAY_INLINE void multiply_rows(const Tiles& t, int row, int column, int columns, int k_begin, int k_end) {
  switch ((columns + lanes - 1) / lanes) {
    case 1: return multiply_block<rows, 1, a_stored, into>(t, row, column, k_begin, k_end);
    case 2: return multiply_block<rows, 2, a_stored, into>(t, row, column, k_begin, k_end);
    case 3: return multiply_block < rows, block_vectors == 4 ? 3 : 2, a_stored, into > (t, row, column, k_begin, k_end);
    default: return multiply_block<rows, block_vectors, a_stored, into>(t, row, column, k_begin, k_end);
  }
}

// reach(first_row, rows) -> Reach. What lies outside of it is neither read nor written.
template <Stored a_stored, Into into, class ReachOf>
ASSAY_INLINE void multiply_tiles(const Tiles& t, int rows, int columns, ReachOf reach) {
  for (int column = 0; column < columns; column += block_columns) {
    for (int row = 0, taken = 0; row < rows; row += taken) {
      const int left = rows - row;
      taken = left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
      const Reach need = reach(row, taken);
      int width = need.columns - column;
      if (width > block_columns) width = block_columns;
      if (width <= 0 || need.k_end <= need.k_begin) continue;
      switch (taken) {
        case 6: multiply_rows<6, a_stored, into>(t, row, column, width, need.k_begin, need.k_end); break;
        case 4: multiply_rows<4, a_stored, into>(t, row, column, width, need.k_begin, need.k_end); break;
        case 2: multiply_rows<2, a_stored, into>(t, row, column, width, need.k_begin, need.k_end); break;
        default: multiply_rows<1, a_stored, into>(t, row, column, width, need.k_begin, need.k_end); break;
      }
    }
  }
}

// ---- packing -------------------------------------------------------------------------------------------------------
template <int distance, int... I>
ASSAY_INLINE void exchange(Vec& low, Vec& high, Lanes<I...>) {
  const Vec a = low, b = high;
  low = __builtin_shufflevector(a, b, ((I & distance) ? lanes + (I ^ distance) : I)...);
  high = __builtin_shufflevector(a, b, ((I & distance) ? lanes + I : (I ^ distance))...);
}
template <int distance>
ASSAY_INLINE void exchange_all(Vec (&m)[lanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i)
    if (!(i & distance)) exchange<distance>(m[i], m[i | distance], AllLanes{});
}
ASSAY_INLINE void transpose(Vec (&m)[lanes]) {
  if constexpr (lanes > 8) exchange_all<8 % lanes>(m);
  if constexpr (lanes > 4) exchange_all<4 % lanes>(m);
  exchange_all<2>(m);
  exchange_all<1>(m);
}

constexpr int64_t round_to_lanes(int64_t n) { return (n + lanes - 1) / lanes * lanes; }

// to[r, :] = factor * from[r, :], padded with zeros to whole vectors.
template <class T>
__attribute__((noinline)) static void pack_rows(const T* from, int64_t from_stride, int64_t rows, int64_t columns,
                                                float factor, float* to) {
  const int64_t padded = round_to_lanes(columns);
  for (int64_t r = 0; r < rows; ++r)
    each(columns, [&](int64_t c, auto span) {
      store_vec(to + r * padded + c, factor * load_span(from + r * from_stride + c, span));
    });
}

// One square of it: the first `rows` rows and the span's columns. A separate function, to be compiled once.
template <class T, class Span>
__attribute__((noinline)) static void transpose_square(const T* from, int64_t from_stride, int64_t rows, Span span,
                                                       float* to, int64_t to_stride) {
  Vec m[lanes];
  for (int i = 0; i < lanes; ++i) m[i] = i < rows ? load_span(from + i * from_stride, span) : Vec{};
  transpose(m);
  for (int i = 0; i < lanes; ++i) store_vec(to + i * to_stride, m[i]);
}

// to[c, r] = from[r, c] with rows of `to_stride`; lanes past `rows` up to a whole vector become zero. `to` must hold
// columns rounded up to whole vectors.
template <class T>
static void pack_transposed(const T* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                            int64_t to_stride) {
  for (int64_t r = 0; r < rows; r += lanes)
    each(columns, [&](int64_t c, auto span) {
      transpose_square(from + r * from_stride + c, from_stride, rows - r, span, to + c * to_stride + r, to_stride);
    });
}

}  // namespace assay::cpu::ASSAY_ISA
