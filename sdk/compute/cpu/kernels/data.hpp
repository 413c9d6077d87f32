// Kernels that move and make data. Where two element types meet, tables are indexed by [to][from].
#pragma once
#include <stdint.h>

#include "common/kernel_shapes.hpp"
#include "isa.hpp"

namespace assay::cpu {

using compute::CopyShape;
using compute::HeadSteps;
using compute::LatentKeysShape;
using compute::RotaryShape;

// Index of a floating-point type in kernel tables; the values of compute::DType.
inline constexpr int kernel_f32 = 0;
inline constexpr int kernel_bf16 = 1;
inline constexpr int kernel_f16 = 2;

struct DataKernels {
  void (*fill_bytes[4])(void* to, uint64_t bits, int64_t count);  // elements of 1, 2, 4, 8 bytes
  void (*fill_float[3])(void* to, float value, int64_t count);
  void (*copy_bytes[4])(void* to, const void* from, const CopyShape&);  // same type: bits are kept
  void (*convert[3][3])(void* to, const void* from, const CopyShape&);
  // By the format (e4m3, e5m2) and x's type. `transposed` may be null; `scale` is NaN where nothing is to be known.
  void (*quantize[2][2])(uint8_t* y, uint8_t* transposed, const void* x, float scale, int64_t rows, int64_t columns);
  // With a scale for each row of x, and for each column, which becomes a row of y.
  void (*quantize_rows[2][2])(uint8_t* y, float* inverse_scale, const void* x, int64_t rows, int64_t columns);
  void (*quantize_columns[2][2])(uint8_t* y, float* inverse_scale, const void* x, int64_t rows, int64_t columns);
  // e4m3 [rows, columns] as columns of so many `places`, those beyond the rows 0; `share` of each row, or NULL.
  void (*transpose_eight_bits)(uint8_t* y, const uint8_t* x, const float* share, int64_t rows, int64_t columns,
                               int64_t places);
  // Of e4m3 numbers: x = y * scale of its row.
  void (*widen_rows)(float* x, const uint8_t* y, const float* scale, int64_t rows, int64_t columns);
  // Element i: words 2 (i / 2 mod 2) and the next of block i / 4 give a pair by Box and Muller; the even one is the
  // cosine.
  void (*random_normal[3])(void* to, int64_t count, uint64_t seed, uint64_t stream, float mean, float std);
  // Element i: words 2 (i mod 2) and the next of block i / 2, as one 64-bit number, scaled to [0, range).
  void (*random_integers)(int64_t* to, int64_t count, uint64_t seed, uint64_t stream, int64_t low, uint64_t range);
  void (*embedding_forward[2][2])(void* out, const void* table, const int64_t* ids, int64_t rows, int64_t width);
  // Sums in fp32 in the order of rows, and rounds once. `links`: scratch of rows + table_rows entries, used when the
  // table is bf16.
  void (*embedding_backward[2][2])(void* dtable, const void* dout, const int64_t* ids, int64_t rows, int64_t width,
                                   int64_t table_rows, int32_t* links);
  void (*rotary[2])(void* x, const float* cos, const float* sin, const RotaryShape&, bool inverse);
  void (*latent_keys_forward[2])(void* k, const void* nope, const void* shared, const float* cos, const float* sin,
                                 const LatentKeysShape&);
  void (*latent_keys_backward[2])(void* dnope, void* dshared, const void* dk, const float* cos, const float* sin,
                                  const LatentKeysShape&);
};

}  // namespace assay::cpu

ASSAY_DECLARE_KERNELS(DataKernels, data_kernels)
