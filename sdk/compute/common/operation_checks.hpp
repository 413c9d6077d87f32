// What each operation asks of its tensors, and the shape it leaves for a kernel: the part of an operation that is the
// same on every device. Compiled into each backend, as checks.hpp; ASSAY_DEVICE_HAS_FP16 says whether it computes in
// fp16.
#pragma once
#include "common/checks.hpp"

namespace assay::compute {

void require_float(const char* operation, const Tensor& t);  // a type that the device computes in
// Contiguous, of one shape and one such type.
void require_alike(const char* operation, std::initializer_list<const Tensor*> tensors);

// ---- copies and random numbers ----
void require_convertible(const Tensor& to, const Tensor& from);  // of equal types, or both floating-point
std::uint64_t integer_range(std::int64_t low, std::int64_t high);

// ---- matrix products ----
void require_matmul_bias(const Tensor& c, const MatmulOptions& options);  // nothing to check where there is none

// ---- element-wise ----
void require_bias(const char* operation, const Tensor& x, const Tensor& bias);
std::int64_t rows_of(const Tensor& x);  // all dimensions but the last
SwigluShape swiglu_forward_shape(const char* operation, const Tensor& gate, const Tensor& up, const Tensor& h);
SwigluShape swiglu_backward_shape(const char* operation, const Tensor& gate, const Tensor& up, const Tensor& dh,
                                  const Tensor& dgate, const Tensor& dup, const Tensor& h);
struct DropoutRule {
  std::uint32_t drop_below;  // of a random word
  float factor;              // of what is kept
};
DropoutRule dropout_rule(const Tensor& x, const Tensor& y, float probability, const Tensor& step);
// Of an operation that drops on the way: drop_below is 0 where nothing is dropped, and the step is not looked at then.
DropoutRule require_dropout(const char* operation, const Dropout& dropout);
DropoutRule bias_relu_dropout_rule(const Tensor& x, const Tensor& bias, const Tensor& y, const Dropout& dropout);
float relu_dropout_factor(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability);

// ---- embedding and position ----
struct EmbeddingShape {
  std::int64_t rows, width, table_rows;
};
// `rows` is out or dout; `expected` says in the message what goes with what.
EmbeddingShape embedding_shape(const char* operation, const Tensor& ids, const Tensor& table, const Tensor& rows,
                               const char* expected);
void require_rotary_table(const char* operation, const Tensor& cos, const Tensor& sin);
RotaryShape rotary_shape(const Tensor& x, const Tensor& cos, const Tensor& sin);

// ---- dropout_add_layer_norm: tensors of [rows, columns], the vectors bias and norm_bias of the weight's type ----
struct DropoutNormShape {
  std::int64_t rows, columns;
  DropoutRule dropout;
};
DropoutNormShape dropout_norm_forward_shape(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                            const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                            const Tensor& norm_bias, const Tensor& y, const Tensor& mean,
                                            const Tensor& rstd);
DropoutNormShape dropout_norm_backward_shape(const Tensor& dy, const Tensor& sum, const Tensor& weight,
                                             const Tensor& mean, const Tensor& rstd, const Dropout& dropout,
                                             const Tensor& dsum, const Tensor& dx, const Tensor& dbias,
                                             const Tensor& dweight, const Tensor& dnorm_bias);

// ---- attention and loss ----
void require_some_columns(const char* operation, const Tensor& x);  // of a softmax
// A [batch, time, heads, depth] operand; `like` gives the expected type and, but for `time`, the expected shape.
void require_operand(const char* operation, const char* name, const Tensor& t, const Tensor& like, std::int64_t time);
void require_head_dimension(const char* operation, const Tensor& q);
float* require_lse(const char* operation, const Tensor& lse, const Tensor& q);
// Logits, checked, and their labels.
const std::int64_t* require_labels(const char* operation, const Tensor& logits, const Tensor& labels);
float* require_row_numbers(const char* operation, const char* name, const Tensor& t, std::int64_t rows);

// ---- sums whose rounding is the point: `terms` one or two, of fp32, bf16 or fp16 on every device ----
void require_ordered(const char* operation, std::initializer_list<const Tensor*> terms, const Tensor& out,
                     const SumOptions& options);

// ---- feeds ----
std::size_t feed_slot_step(std::size_t slots, std::size_t bytes_per_slot,
                           const void* device_memory);  // from twin to twin
void require_feed_slot(const char* operation, std::size_t slot, std::size_t slots);
void require_delivery(const Tensor& to, std::size_t bytes_per_slot);

// ---- numbers and optimizers ----
float* require_number(const char* operation, const char* name, const Tensor& t, const char* of_what);
std::int64_t* require_counter(const char* operation, const char* name, const Tensor& t, const char* of_what);
inline constexpr const char* step_text = "the number of this step";
void* require_state(const char* operation, const char* name, const Tensor& state, const Tensor& parameter);
void require_momentum(const SgdOptions& options, const Tensor& momentum);

}  // namespace assay::compute
