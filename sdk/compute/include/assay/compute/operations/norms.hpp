// Normalisation over the last dimension, C. x, y and their gradients are of one type T, [..., C], contiguous; weights
// and biases are fp32 or T, [C]; gradients by them are fp32 or T; statistics (mean, rstd) are fp32, one for each row.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/operations/elementwise.hpp>
#include <assay/compute/operations/formats.hpp>

#include <array>

namespace assay::compute::op {

// y = x * rstd * (weight + weight_offset), rstd = 1/sqrt(mean(x^2) + eps). Of y and `eight_bits`, which are those of y,
// one may be left out. An offset of 1 is that of weights which count from one, as Gemma's, and which decay to it.
struct RmsNormForward {
  In x, weight;
  Optional<Out> y;
  Out rstd;
  float eps;
  float weight_offset = 0;
  EightBitRows eight_bits = {};
  ASSAY_OPERATION("rms_norm_forward", x, weight, y, rstd, eight_bits)
};
// sum = x + residual; y = rms_norm(sum).
struct AddRmsNormForward {
  In x, residual;
  Out sum;
  In weight;
  Optional<Out> y;
  Out rstd;
  float eps;
  float weight_offset = 0;
  EightBitRows eight_bits = {};
  static constexpr auto in_place = std::to_array<InPlace>({{"sum", "x"}, {"sum", "residual"}});
  ASSAY_OPERATION("add_rms_norm_forward", x, residual, sum, weight, y, rstd, eight_bits)
};
// dx = gradient by x (+ residual, the gradient that came by the residual path); dweight (+)= gradient by weight. When
// `y` is given, the forward's result is written there again, for the gradient of the matrix that follows. `eight_bits`
// are those of dx.
struct RmsNormBackward {
  In dy, x, weight, rstd;
  Optional<In> residual = {};
  Out dx;
  OutOrSum dweight;
  bool accumulate = false;
  float weight_offset = 0;
  Optional<Out> y = {};
  EightBitRows eight_bits = {};
  static constexpr auto in_place = std::to_array<InPlace>({{"dx", "dy"}, {"dx", "residual"}});
  ASSAY_OPERATION("rms_norm_backward", dy, x, weight, rstd, residual, dx, dweight, y, eight_bits)
};

// y = (x - mean) * rstd * weight + bias.
struct LayerNormForward {
  In x, weight, bias;
  Out y, mean, rstd;
  float eps;
  ASSAY_OPERATION("layer_norm_forward", x, weight, bias, y, mean, rstd)
};
// Works as RmsNormBackward.
struct LayerNormBackward {
  In dy, x, weight, mean, rstd;
  Optional<In> residual = {};
  Out dx;
  OutOrSum dweight, dbias;
  bool accumulate = false;
  static constexpr auto in_place = std::to_array<InPlace>({{"dx", "dy"}, {"dx", "residual"}});
  ASSAY_OPERATION("layer_norm_backward", dy, x, weight, mean, rstd, residual, dx, dweight, dbias)
};

// The end of a post-norm block in one pass: sum = dropout(x + bias) + residual; y = layer_norm(sum).
struct DropoutAddLayerNormForward {
  In x;
  Optional<In> bias = {};  // of the type of weight
  In residual;
  Dropout dropout;
  Out sum;
  In weight, norm_bias;  // of one type
  Out y, mean, rstd;
  float eps;
  static constexpr auto in_place = std::to_array<InPlace>({{"sum", "x"}, {"sum", "residual"}});
  ASSAY_OPERATION("dropout_add_layer_norm_forward", x, bias, residual, dropout, sum, weight, norm_bias, y, mean, rstd)
};
// Its backward: dsum = gradient by `sum`, which is also that by `residual`; dx = gradient by x + bias, dsum through the
// dropout's mask; dbias, dweight, dnorm_bias (+)= gradients by the three vectors. Without dropout dx equals dsum and
// must be empty.
struct DropoutAddLayerNormBackward {
  In dy, sum, weight, mean, rstd;
  Dropout dropout;
  Out dsum;
  Optional<Out> dx = {};
  Optional<OutOrSum> dbias = {};
  OutOrSum dweight, dnorm_bias;
  bool accumulate = false;
  static constexpr auto in_place = std::to_array<InPlace>({{"dsum", "dy"}});
  ASSAY_OPERATION("dropout_add_layer_norm_backward", dy, sum, weight, mean, rstd, dropout, dsum, dx, dbias, dweight,
                  dnorm_bias)
};

}  // namespace assay::compute::op

// clang-format off
#define ASSAY_OPERATIONS_OF_NORMS(X) \
  X(RmsNormForward) X(AddRmsNormForward) X(RmsNormBackward) X(LayerNormForward) X(LayerNormBackward) \
  X(DropoutAddLayerNormForward) X(DropoutAddLayerNormBackward)
// clang-format on
