// What kernels need of a checked operation: rows, steps and factors. This part of an operation's arguments is the same
// on every device.
#pragma once
#include <assay/compute/operations.hpp>

#include <cstdint>

#include "common/kernel_shapes.hpp"
#include "common/rotary_frequency.hpp"

namespace assay::compute {

template <class T>
T* data_of(const Tensor& t) {
  return static_cast<T*>(t.data);
}

inline bool is_float(DType t) { return t == DType::f32 || t == DType::bf16 || t == DType::f16; }

// All dimensions but the last, of a tensor that has one.
inline std::int64_t rows_of(const Tensor& x) { return x.dim(-1) == 0 ? 0 : x.elements() / x.dim(-1); }

// The fewest dimensions that describe both walks, right-aligned: neighbours that both tensors walk in one stride merge.
CopyShape copy_shape(const Tensor& to, const Tensor& from);
SwigluShape swiglu_shape(const op::SwigluForward& op);
SwigluShape swiglu_shape(const op::SwigluBackward& op);
RotaryShape rotary_shape(const op::Rotary& op);
HeadNormShape head_norm_shape(const op::HeadNormRotaryForward& op);
HeadNormShape head_norm_shape(const op::HeadNormRotaryBackward& op);
LatentKeysShape latent_keys_shape(const op::LatentKeysForward& op);
LatentKeysShape latent_keys_shape(const op::LatentKeysBackward& op);

struct DropoutRule {
  std::uint32_t drop_below;  // of a random word; 0: nothing is dropped, and the step is not looked at
  float factor;              // of what is kept
};
DropoutRule dropout_rule(float probability);

// How many integers random_integers chooses from.
inline std::uint64_t integer_range(const op::RandomIntegers& op) {
  return static_cast<std::uint64_t>(op.high) - static_cast<std::uint64_t>(op.low);
}

}  // namespace assay::compute
