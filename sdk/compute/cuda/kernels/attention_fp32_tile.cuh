// Products of tiles in shared memory, with the results in registers: what the fp32 attention kernels are made of.
//
// A block has 4 warps. A product of a BM x BN tile gives each warp BM/4 rows, whole: a row of scores and its softmax
// thus stay within one warp. In a warp, lane = 8 * r + c; the thread has the rows r, r + 4, ... of the warp's and the
// columns c, c + 8, ... of the scores, or the columns 4c..4c+3, 32 + 4c.., ... of a result of DP columns.
//
// Tiles lie row by row with 4 floats of padding, so that 8 rows read at once as float4 lie in different banks.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "attention_fp32.hpp"

namespace assay::cuda::fp32_attention {

inline constexpr int threads = 128, warps = 4;
inline constexpr int padding = 4;
inline constexpr float log2_e = 1.4426950408889634F;

// Head dimensions are padded to DP, a multiple of 32, with zeros.
template <int DP_, int BM_, int BN_>
struct Tiling {
  static constexpr int DP = DP_, BM = BM_, BN = BN_;
  static_assert(DP % 32 == 0 && BM % (4 * warps) == 0 && BN % 8 == 0);
  static constexpr int row_stride = DP + padding;                                   // of operands
  static constexpr int score_stride = BN + padding;                                 // of probabilities
  static constexpr int rows = BM / (4 * warps), columns = BN / 8, quads = DP / 32;  // of a thread
};

struct Place {
  int row;     // the thread's first row in a tile, the others are 4 apart
  int column;  // 0..7
};
template <class T>
__device__ inline Place place() {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  return {warp * (T::BM / warps) + lane / 8, lane % 8};
}

template <int N, class X>
__device__ inline void fill(X (&values)[N], const X& value) {
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = value;
}
template <int N, int M, class X>
__device__ inline void fill(X (&values)[N][M], const X& value) {
#pragma unroll
  for (int i = 0; i < N; ++i) fill(values[i], value);
}

// Rows of a [T, D] operand to shared memory; zeros past the last row and past the depth. `wide`: addresses, strides and
// depth are multiples of four floats.
template <int ROWS, int DP>
__device__ inline void load_tile(float* tile, const float* source, std::int64_t stride, int valid_rows, int depth,
                                 bool wide) {
  constexpr int quads_per_row = DP / 4;
  static_assert(ROWS * quads_per_row % threads == 0);
#pragma unroll
  for (int step = 0; step < ROWS * quads_per_row / threads; ++step) {
    const int quad = step * threads + static_cast<int>(threadIdx.x);
    const int row = quad / quads_per_row, column = quad % quads_per_row * 4;
    float4 x = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    if (row < valid_rows) {
      const float* const from = source + row * stride + column;
      if (wide) {
        if (column < depth) x = *reinterpret_cast<const float4*>(from);
      } else {
        if (column < depth) x.x = from[0];
        if (column + 1 < depth) x.y = from[1];
        if (column + 2 < depth) x.z = from[2];
        if (column + 3 < depth) x.w = from[3];
      }
    }
    *reinterpret_cast<float4*>(tile + row * (DP + padding) + column) = x;
  }
}

// score[i][j] += row i of `a` times row j of `b`, over LENGTH columns.
template <class T, int LENGTH>
__device__ inline void multiply_parts(float (&score)[T::rows][T::columns], const float* a, const float* b) {
#pragma unroll 2
  for (int d = 0; d < LENGTH; d += 4) {
    float4 y[T::columns];
#pragma unroll
    for (int j = 0; j < T::columns; ++j) y[j] = *reinterpret_cast<const float4*>(b + j * 8 * T::row_stride + d);
#pragma unroll
    for (int i = 0; i < T::rows; ++i) {
      const float4 x = *reinterpret_cast<const float4*>(a + i * 4 * T::row_stride + d);
#pragma unroll
      for (int j = 0; j < T::columns; ++j) score[i][j] = fmaf(x.x, y[j].x, score[i][j]);
#pragma unroll
      for (int j = 0; j < T::columns; ++j) score[i][j] = fmaf(x.y, y[j].y, score[i][j]);
#pragma unroll
      for (int j = 0; j < T::columns; ++j) score[i][j] = fmaf(x.z, y[j].z, score[i][j]);
#pragma unroll
      for (int j = 0; j < T::columns; ++j) score[i][j] = fmaf(x.w, y[j].w, score[i][j]);
    }
  }
}

// score[i][j] = row i of `a` times row j of `b`, over DP.
template <class T>
__device__ inline void multiply_rows(float (&score)[T::rows][T::columns], const float* a, const float* b, Place at) {
  a += at.row * T::row_stride;
  b += at.column * T::row_stride;
  fill(score, 0.0F);
  if constexpr (T::DP <= 128) {
    multiply_parts<T, T::DP>(score, a, b);
  } else {
    // The rounding errors of one long sum would show in the probabilities: sums of sums have fewer.
    for (int d = 0; d < T::DP; d += 64) {
      float part[T::rows][T::columns];
      fill(part, 0.0F);
      multiply_parts<T, 64>(part, a + d, b + d);
#pragma unroll
      for (int i = 0; i < T::rows; ++i)
#pragma unroll
        for (int j = 0; j < T::columns; ++j) score[i][j] += part[i][j];
    }
  }
}

__device__ inline void add_scaled(float4& sum, float factor, const float4& x) {
  sum.x = fmaf(factor, x.x, sum.x);
  sum.y = fmaf(factor, x.y, sum.y);
  sum.z = fmaf(factor, x.z, sum.z);
  sum.w = fmaf(factor, x.w, sum.w);
}

// result[i] += sum over k of p[i][k] times row k of `v`, over BN. p is in shared memory: what its row's warp wrote.
template <class T>
__device__ inline void multiply_columns(float4 (&result)[T::rows][T::quads], const float* p, const float* v, Place at) {
  p += at.row * T::score_stride;
  v += at.column * 4;
#pragma unroll 2
  for (int k = 0; k < T::BN; k += 4) {
    float4 x[T::rows];
#pragma unroll
    for (int i = 0; i < T::rows; ++i) x[i] = *reinterpret_cast<const float4*>(p + i * 4 * T::score_stride + k);
#pragma unroll
    for (int q = 0; q < T::quads; ++q) {
      const float* const from = v + k * T::row_stride + q * 32;
      const float4 y0 = *reinterpret_cast<const float4*>(from);
#pragma unroll
      for (int i = 0; i < T::rows; ++i) add_scaled(result[i][q], x[i].x, y0);
      const float4 y1 = *reinterpret_cast<const float4*>(from + T::row_stride);
#pragma unroll
      for (int i = 0; i < T::rows; ++i) add_scaled(result[i][q], x[i].y, y1);
      const float4 y2 = *reinterpret_cast<const float4*>(from + 2 * T::row_stride);
#pragma unroll
      for (int i = 0; i < T::rows; ++i) add_scaled(result[i][q], x[i].z, y2);
      const float4 y3 = *reinterpret_cast<const float4*>(from + 3 * T::row_stride);
#pragma unroll
      for (int i = 0; i < T::rows; ++i) add_scaled(result[i][q], x[i].w, y3);
    }
  }
}

// The thread's part of a score tile to shared memory, for multiply_columns. Only its warp reads those rows.
template <class T>
__device__ inline void store_scores(float* p, const float (&score)[T::rows][T::columns], Place at) {
#pragma unroll
  for (int i = 0; i < T::rows; ++i)
#pragma unroll
    for (int j = 0; j < T::columns; ++j) p[(at.row + 4 * i) * T::score_stride + at.column + 8 * j] = score[i][j];
}

// The thread's part of a result, times `factor[i]`, to rows of a [T, D] operand.
template <class T>
__device__ inline void store_rows(float* target, std::int64_t stride, int valid_rows, int depth, bool wide,
                                  const float4 (&result)[T::rows][T::quads], const float (&factor)[T::rows], Place at) {
#pragma unroll
  for (int i = 0; i < T::rows; ++i) {
    const int row = at.row + 4 * i;
    if (row >= valid_rows) continue;
#pragma unroll
    for (int q = 0; q < T::quads; ++q) {
      const int column = q * 32 + at.column * 4;
      float4 x = result[i][q];
      x.x *= factor[i], x.y *= factor[i], x.z *= factor[i], x.w *= factor[i];
      float* const to = target + row * stride + column;
      if (wide) {
        if (column < depth) *reinterpret_cast<float4*>(to) = x;
      } else {
        if (column < depth) to[0] = x.x;
        if (column + 1 < depth) to[1] = x.y;
        if (column + 2 < depth) to[2] = x.z;
        if (column + 3 < depth) to[3] = x.w;
      }
    }
  }
}

// Which tile and head a block has. All heads of one tile follow each other, so that with a causal mask the tiles with
// most work can come first.
struct Job {
  int tile;
  std::int64_t batch, head;
};
__device__ inline Job job_of(std::int64_t batch, std::int64_t heads) {
  const auto sequences = static_cast<unsigned>(batch * heads);
  const unsigned sequence = blockIdx.x % sequences;
  return {static_cast<int>(blockIdx.x / sequences), sequence / heads, sequence % heads};
}
__device__ inline float* start_of(const AttentionFp32View& view, const Job& job, int row) {
  return view.data + job.batch * view.batch + job.head * view.head + row * view.time;
}
// The head of keys and values that a head of queries reads.
__device__ inline Job keys_of(const AttentionFp32Args& a, const Job& queries) {
  return {queries.tile, queries.batch, a.group == 1 ? queries.head : queries.head / a.group};
}

}  // namespace assay::cuda::fp32_attention
