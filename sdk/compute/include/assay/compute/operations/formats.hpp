// Changes of format that lose range: to 8 bits with a scale.
#pragma once
#include <assay/compute/operation_fields.hpp>

namespace assay::compute::op {

// A tensor in 8 bits with one scale for all of it, the power of two that takes its largest magnitude next to the
// format's largest number ("current scaling"; the formats are in assay/compute/eight_bit.hpp):
//   m = max(max_abs[0], 2^-100), s the largest power of two for which s m <= largest
//   inverse_scale[0] = 1 / s, y = x s to the nearest number of the format, ties to even
// so that x is nearly y inverse_scale. Magnitudes beyond max_abs may end at the largest number. A NaN of x stays one;
// where max_abs is not finite, inverse_scale and all of y are NaN.
struct Quantize {
  In x;                      // T [..., columns], contiguous
  In max_abs;                // fp32 [1]: what MaxAbs makes of x
  Out y;                     // fp8_e4m3 or fp8_e5m2, of the shape of x
  Optional<Out> transposed;  // y's type [columns, rows]: the same numbers, for products that read columns
  Out inverse_scale;         // fp32 [1]
  ASSAY_OPERATION("quantize", x, max_abs, y, transposed, inverse_scale)
};

// As Quantize, with a scale for each row, which takes the row's own largest magnitude next to the format's largest
// number: what a product reads whose inner dimension is the columns, with `a_scale` or `b_scale` (Matmul).
struct QuantizeRows {
  In x;               // T [rows, columns], contiguous
  Out y;              // fp8_e4m3 or fp8_e5m2, of the shape of x
  Out inverse_scale;  // fp32 [rows]
  ASSAY_OPERATION("quantize_rows", x, y, inverse_scale)
};
// The same of the columns of x, which become the rows of y.
struct QuantizeColumns {
  In x;               // T [rows, columns], contiguous
  Out y;              // fp8_e4m3 or fp8_e5m2 [columns, rows]
  Out inverse_scale;  // fp32 [columns]
  ASSAY_OPERATION("quantize_columns", x, y, inverse_scale)
};

// Rows of 8 bits as columns, for a product whose sums run over these rows, as gradients by weights sum over tokens.
// Such sums cannot have a scale for each row. The scales of both operands, s[r] = scale[r] other_scale[r], are put into
// the numbers of one of them, relative to the largest, m = max s:
//   y[c, r] = x[r, c] (s[r] / m) to the nearest number of the format, ties to even; inverse_scale[0] = m
// A power of two changes no mantissa, so that nothing is rounded but what becomes less than the least normal number.
// The other operand is transposed without scales, its numbers as they are. Columns of y beyond the rows of x are 0. In
// fp32; where m is 0, so is y; a NaN of x stays one, and where m is not finite inverse_scale and all of y are NaN.
struct TransposeEightBits {
  In x;                                       // fp8_e4m3 [rows, columns], contiguous
  Optional<In> scale = {}, other_scale = {};  // fp32 [rows]; both or neither
  Out y;                                      // fp8_e4m3 [columns, rows or more], contiguous
  Optional<Out> inverse_scale = {};           // fp32 [1], only with scales
  ASSAY_OPERATION("transpose_eight_bits", x, scale, other_scale, y, inverse_scale)
};

// A result in 8 bits, beside it or in its place: QuantizeRows of its numbers, as its own type rounds them.
struct EightBitRows {
  Optional<Out> numbers;        // fp8_e4m3 [rows, columns]
  Optional<Out> inverse_scale;  // fp32 [rows]
  constexpr explicit operator bool() const { return static_cast<bool>(numbers); }
  ASSAY_TENSORS(numbers, inverse_scale)
};

}  // namespace assay::compute::op

// clang-format off
#define ASSAY_OPERATIONS_OF_FORMATS(X) \
  X(Quantize) X(QuantizeRows) X(QuantizeColumns) X(TransposeEightBits)
// clang-format on
