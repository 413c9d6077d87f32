// Element-wise operations, bias, SwiGLU, dropout. All tensors are of one type T and one shape, and contiguous, unless
// said otherwise.
#pragma once
#include <assay/compute/operation_fields.hpp>
#include <assay/compute/operations/formats.hpp>

#include <array>
#include <cstdint>

namespace assay::compute {

enum class Activation : std::int32_t { relu, gelu_erf, gelu_tanh, silu };

// Inverted dropout: element i of x becomes x[i] / (1 - probability), or 0 with that probability. The mask is never
// stored: it is made from (seed, stream, *step, i) wherever it is needed, the same each time. With probability 0
// nothing is dropped, and the other fields are ignored.
struct Dropout {
  float probability = 0.0F;  // in [0, 1)
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // one for each place of a model
  Optional<In> step = {};    // i64 [1] in device memory: another mask each step, also in a captured one
  ASSAY_TENSORS(step)
};

namespace op {

struct Add {
  In a, b;
  Out out;
  static constexpr auto in_place = std::to_array<InPlace>({{"out", "a"}, {"out", "b"}});
  ASSAY_OPERATION("add", a, b, out)
};
struct Multiply {
  In a, b;
  Out out;
  static constexpr auto in_place = std::to_array<InPlace>({{"out", "a"}, {"out", "b"}});
  ASSAY_OPERATION("multiply", a, b, out)
};
struct Scale {
  In x;
  float factor;
  Out out;
  static constexpr auto in_place = std::to_array<InPlace>({{"out", "x"}});
  ASSAY_OPERATION("scale", x, out)
};
// out = cap tanh(x / cap): what a soft cap makes of logits.
struct SoftCap {
  In x;
  float cap;  // above 0
  Out out;
  static constexpr auto in_place = std::to_array<InPlace>({{"out", "x"}});
  ASSAY_OPERATION("soft_cap", x, out)
};

struct ActivationForward {
  Activation kind;
  In x;
  Out y;
  static constexpr auto in_place = std::to_array<InPlace>({{"y", "x"}});
  ASSAY_OPERATION("activation_forward", x, y)
};
struct ActivationBackward {
  Activation kind;
  In x, dy;
  Out dx;
  static constexpr auto in_place = std::to_array<InPlace>({{"dx", "dy"}, {"dx", "x"}});
  ASSAY_OPERATION("activation_backward", x, dy, dx)
};

// y[r, c] = x[r, c] + bias[c].
struct BiasAdd {
  In x;     // T [..., C]
  In bias;  // [C], fp32 or T
  Out y;
  static constexpr auto in_place = std::to_array<InPlace>({{"y", "x"}});
  ASSAY_OPERATION("bias_add", x, bias, y)
};
// dbias[c] (+)= sum over rows of dy[r, c].
struct BiasBackward {
  In dy;           // T [..., C]
  OutOrSum dbias;  // [C], fp32 or T
  bool accumulate = false;
  ASSAY_OPERATION("bias_backward", dy, dbias)
};

// h = activation(gate) * up, of SiLU (SwiGLU), or of GELU by tanh (GeGLU) without 8 bits. Honours a row stride, so that
// gate and up may be halves of one buffer [rows, 2 d_ff]. Of h and `eight_bits`, which are those of h, one may be left
// out.
struct SwigluForward {
  In gate, up;
  Optional<Out> h;
  EightBitRows eight_bits = {};
  Activation activation = Activation::silu;
  ASSAY_OPERATION("swiglu_forward", gate, up, h, eight_bits)
};
// Its backward; honours row strides. When `h` is given, the forward's result is written there on the way (for the
// gradient of the matrix that follows). `eight_bits` are those of the buffer whose halves dgate and dup are; with them
// both may be left out.
struct SwigluBackward {
  In gate, up, dh;
  Optional<Out> dgate, dup;
  Optional<Out> h = {};
  EightBitRows eight_bits = {};
  Activation activation = Activation::silu;
  static constexpr auto in_place = std::to_array<InPlace>({{"dgate", "gate"}, {"dup", "up"}});
  ASSAY_OPERATION("swiglu_backward", gate, up, dh, dgate, dup, h, eight_bits)
};

// y = x * mask / (1 - p). The backward is the same operation on dy. Here the step is needed with any probability.
struct ApplyDropout {
  In x;
  Out y;
  Dropout dropout;
  static constexpr auto in_place = std::to_array<InPlace>({{"y", "x"}});
  ASSAY_OPERATION("dropout", x, y, dropout)
};
// y = dropout(relu(x + bias)).
struct BiasReluDropoutForward {
  In x;                    // T [..., C]
  Optional<In> bias = {};  // [C], fp32 or T
  Out y;
  Dropout dropout;
  static constexpr auto in_place = std::to_array<InPlace>({{"y", "x"}});
  ASSAY_OPERATION("bias_relu_dropout_forward", x, bias, y, dropout)
};
// dx = dy / (1 - probability) where y > 0, else 0: y, the forward's result, shows both masks.
struct ReluDropoutBackward {
  In y, dy;
  Out dx;
  float probability;
  static constexpr auto in_place = std::to_array<InPlace>({{"dx", "dy"}});
  ASSAY_OPERATION("relu_dropout_backward", y, dy, dx)
};

}  // namespace op
}  // namespace assay::compute

// clang-format off
#define ASSAY_OPERATIONS_OF_ELEMENTWISE(X) \
  X(Add) X(Multiply) X(Scale) X(SoftCap) X(ActivationForward) X(ActivationBackward) X(BiasAdd) \
  X(BiasBackward) X(SwigluForward) X(SwigluBackward) X(ApplyDropout) X(BiasReluDropoutForward) \
  X(ReluDropoutBackward)
// clang-format on
