#include "common/operation_checks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace assay::compute {
namespace {

#if ASSAY_DEVICE_HAS_FP16
constexpr std::initializer_list<DType> served_floats = {DType::f32, DType::bf16, DType::f16};
#else
constexpr std::initializer_list<DType> served_floats = {DType::f32, DType::bf16};
#endif

[[noreturn]] void refuse(const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, text); }

void require_shape(const char* operation, bool fits, const char* expected) {
  if (!fits) refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL ": expected {}", operation, expected));
}

void require_step(const char* operation, const Tensor& step) {
  require_dtype(operation, step, {DType::i64});
  require_count(operation, "step", step, 1, "the number of this step, in device memory");
}

DropoutRule rule_of(const char* operation, float probability) {
  if (!(probability >= 0.0F && probability < 1.0F))
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL ": probability {}; expected 0 <= probability < 1", operation,
                       probability));
  return {static_cast<std::uint32_t>(std::llround(static_cast<double>(probability) * 0x1p32)),
          static_cast<float>(1.0 / (1.0 - static_cast<double>(probability)))};
}

DropoutNormShape dropout_norm_shape(const char* operation, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                    const Tensor& rstd, const Dropout& dropout) {
  require_dtype(operation, weight, {DType::f32, x.dtype});
  require_some_columns(operation, x);
  const DropoutNormShape shape{rows_of(x), x.dim(-1), require_dropout(operation, dropout)};
  require_columns(operation, "weight", weight, shape.columns);
  require_statistic(operation, "mean", mean, shape.rows);
  require_statistic(operation, "rstd", rstd, shape.rows);
  return shape;
}

}  // namespace

void require_float(const char* operation, const Tensor& t) { require_dtype(operation, t, served_floats); }

void require_alike(const char* operation, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  require_float(operation, first);
  for (const Tensor* t : tensors) require_like(operation, first, *t);
}

// ---- copies and random numbers -------------------------------------------------------------------------------------

void require_convertible(const Tensor& to, const Tensor& from) {
  require_same_shape("copy", to, from);
  if (to.dtype == from.dtype) return;
  for (const Tensor* t : {&to, &from}) require_dtype("copy between types", *t, {DType::f32, DType::bf16, DType::f16});
}

std::uint64_t integer_range(std::int64_t low, std::int64_t high) {
  if (low >= high)
    refuse(fmt::format("random_integers on the " ASSAY_DEVICE_LABEL ": range [{}, {}) is empty; expected low < high",
                       low, high));
  return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
}

// ---- matrix products -----------------------------------------------------------------------------------------------

void require_matmul_bias(const Tensor& c, const MatmulOptions& options) {
  const Tensor& bias = options.bias;
  if (!bias) return;
  require_dtype("matmul with a bias", bias, {c.dtype});
  require_rank("matmul with a bias", bias, 1);
  require_count("matmul with a bias", "bias", bias, c.dim(-1), "one for each column of c");
  if (options.accumulate || options.alpha != 1.0F)
    refuse(fmt::format("matmul on the " ASSAY_DEVICE_LABEL
                       ": a bias with {} given; expected alpha 1 and no accumulation: use bias_add",
                       options.accumulate ? "accumulate" : fmt::format("alpha {}", options.alpha)));
}

// ---- element-wise --------------------------------------------------------------------------------------------------

void require_bias(const char* operation, const Tensor& x, const Tensor& bias) {
  require_dtype(operation, bias, {DType::f32, x.dtype});
  require_contiguous(operation, bias);
  if (x.rank == 0 || bias.elements() != x.dim(-1))
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL
                       ": a bias of {} elements; expected one for each of the {} columns",
                       operation, bias.elements(), x.rank == 0 ? 0 : x.dim(-1)));
}

std::int64_t rows_of(const Tensor& x) { return x.dim(-1) == 0 ? 0 : x.elements() / x.dim(-1); }

SwigluShape swiglu_forward_shape(const char* operation, const Tensor& gate, const Tensor& up, const Tensor& h) {
  require_float(operation, gate);
  for (const Tensor* t : {&up, &h}) {
    require_dtype(operation, *t, {gate.dtype});
    require_same_shape(operation, gate, *t);
  }
  const Rows rows = as_rows(operation, gate);
  return {rows.count, rows.width, rows.stride, as_rows(operation, up).stride, 0, 0, 0, as_rows(operation, h).stride};
}

SwigluShape swiglu_backward_shape(const char* operation, const Tensor& gate, const Tensor& up, const Tensor& dh,
                                  const Tensor& dgate, const Tensor& dup, const Tensor& h) {
  require_float(operation, gate);
  for (const Tensor* t : {&up, &dh, &dgate, &dup, &h}) {
    if (t == &h && !h) continue;
    require_dtype(operation, *t, {gate.dtype});
    require_same_shape(operation, gate, *t);
  }
  const Rows rows = as_rows(operation, gate);
  return {rows.count,
          rows.width,
          rows.stride,
          as_rows(operation, up).stride,
          as_rows(operation, dh).stride,
          as_rows(operation, dgate).stride,
          as_rows(operation, dup).stride,
          h ? as_rows(operation, h).stride : 0};
}

DropoutRule dropout_rule(const Tensor& x, const Tensor& y, float probability, const Tensor& step) {
  require_alike("dropout", {&x, &y});
  require_step("dropout", step);
  return rule_of("dropout", probability);
}

DropoutRule require_dropout(const char* operation, const Dropout& dropout) {
  const DropoutRule rule = rule_of(operation, dropout.probability);
  if (dropout.probability > 0.0F) require_step(operation, dropout.step);
  return rule;
}

DropoutRule bias_relu_dropout_rule(const Tensor& x, const Tensor& bias, const Tensor& y, const Dropout& dropout) {
  constexpr const char* operation = "bias_relu_dropout_forward";
  require_alike(operation, {&x, &y});
  if (bias) require_bias(operation, x, bias);
  return require_dropout(operation, dropout);
}

float relu_dropout_factor(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) {
  require_alike("relu_dropout_backward", {&y, &dy, &dx});
  return rule_of("relu_dropout_backward", probability).factor;
}

// ---- dropout_add_layer_norm ----------------------------------------------------------------------------------------

DropoutNormShape dropout_norm_forward_shape(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                            const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                            const Tensor& norm_bias, const Tensor& y, const Tensor& mean,
                                            const Tensor& rstd) {
  constexpr const char* operation = "dropout_add_layer_norm_forward";
  require_alike(operation, {&x, &residual, &sum, &y});
  const DropoutNormShape shape = dropout_norm_shape(operation, x, weight, mean, rstd, dropout);
  for (const auto& [name, vector] : {std::pair{"bias", &bias}, {"norm_bias", &norm_bias}}) {
    if (vector == &bias && !bias) continue;
    require_dtype(operation, *vector, {weight.dtype});
    require_columns(operation, name, *vector, shape.columns);
  }
  return shape;
}

DropoutNormShape dropout_norm_backward_shape(const Tensor& dy, const Tensor& sum, const Tensor& weight,
                                             const Tensor& mean, const Tensor& rstd, const Dropout& dropout,
                                             const Tensor& dsum, const Tensor& dx, const Tensor& dbias,
                                             const Tensor& dweight, const Tensor& dnorm_bias) {
  constexpr const char* operation = "dropout_add_layer_norm_backward";
  require_alike(operation, {&dy, &sum, &dsum});
  if (dx) require_like(operation, dy, dx);
  if (dx && dropout.probability == 0.0F)
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL
                       ": dx given where nothing is dropped; expected it empty: dsum is the gradient by x, too",
                       operation));
  const DropoutNormShape shape = dropout_norm_shape(operation, sum, weight, mean, rstd, dropout);
  if (dbias) require_gradient(operation, "dbias", sum, dbias);
  require_gradient(operation, "dweight", sum, dweight);
  require_gradient(operation, "dnorm_bias", sum, dnorm_bias);
  return shape;
}

// ---- embedding and position ----------------------------------------------------------------------------------------

EmbeddingShape embedding_shape(const char* operation, const Tensor& ids, const Tensor& table, const Tensor& rows,
                               const char* expected) {
  require_dtype(operation, ids, {DType::i64});
  require_float(operation, table);
  require_float(operation, rows);
  for (const Tensor* t : {&ids, &table, &rows}) require_contiguous(operation, *t);
  require_rank(operation, table, 2);
  const EmbeddingShape shape{ids.elements(), table.dim(1), table.dim(0)};
  require_shape(operation, rows.rank > 0 && rows.dim(-1) == shape.width && rows.elements() == shape.rows * shape.width,
                expected);
  return shape;
}

void require_rotary_table(const char* operation, const Tensor& cos, const Tensor& sin) {
  require_rank(operation, cos, 2);
  require_same_shape(operation, cos, sin);
  for (const Tensor* t : {&cos, &sin}) {
    require_dtype(operation, *t, {DType::f32});
    require_contiguous(operation, *t);
  }
}

RotaryShape rotary_shape(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  constexpr const char* operation = "rotary";
  require_float(operation, x);
  require_rank(operation, x, 4);
  require_rotary_table(operation, cos, sin);
  require_shape(operation, x.dim(3) == 2 * cos.dim(1) && x.dim(1) <= cos.dim(0),
                "x [B, T, H, D] with cos and sin [at least T, D/2]");
  if (x.step(3) != 1) reject(operation, "the last dimension of x has gaps; expected adjacent elements: copy it first");
  return {x.dim(0), x.dim(1), x.dim(2), cos.dim(1), x.step(0), x.step(1), x.step(2)};
}

// ---- attention and loss --------------------------------------------------------------------------------------------

void require_some_columns(const char* operation, const Tensor& x) {
  if (x.rank == 0 || x.dim(-1) == 0)
    refuse(fmt::format(
        "{} on the " ASSAY_DEVICE_LABEL ": no columns given; expected at least one in the last dimension", operation));
}

void require_operand(const char* operation, const char* name, const Tensor& t, const Tensor& like, std::int64_t time) {
  require_rank(operation, t, 4);
  require_dtype(operation, t, {like.dtype});
  if (t.dim(0) != like.dim(0) || t.dim(1) != time || t.dim(2) != like.dim(2) || t.dim(3) != like.dim(3))
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL ": {} is [{}, {}, {}, {}]; expected [{}, {}, {}, {}]", operation,
                       name, t.dim(0), t.dim(1), t.dim(2), t.dim(3), like.dim(0), time, like.dim(2), like.dim(3)));
  if (t.dim(3) > 1 && t.step(3) != 1)
    reject(operation,
           fmt::format("{} has stride {} over the head dimension; expected 1: copy it first", name, t.step(3)));
}

void require_head_dimension(const char* operation, const Tensor& q) {
  if (q.dim(3) == 0)
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL ": the head dimension is 0; expected at least 1", operation));
}

float* require_lse(const char* operation, const Tensor& lse, const Tensor& q) {
  require_dtype(operation, lse, {DType::f32});
  require_contiguous(operation, lse);
  if (lse.elements() != q.dim(0) * q.dim(1) * q.dim(2))
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL
                       ": lse has {} elements; expected batch {} x heads {} x queries {}",
                       operation, lse.elements(), q.dim(0), q.dim(2), q.dim(1)));
  return static_cast<float*>(lse.data);
}

const std::int64_t* require_labels(const char* operation, const Tensor& logits, const Tensor& labels) {
  require_float(operation, logits);
  require_contiguous(operation, logits);
  if (logits.rank == 0 || logits.dim(-1) == 0)
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL ": logits have no columns; expected one for each class",
                       operation));
  require_dtype(operation, labels, {DType::i64});
  require_count(operation, "labels", labels, rows_of(logits), "one for each row of the logits");
  return static_cast<const std::int64_t*>(labels.data);
}

float* require_row_numbers(const char* operation, const char* name, const Tensor& t, std::int64_t rows) {
  require_dtype(operation, t, {DType::f32});
  require_count(operation, name, t, rows, "one for each row of the logits");
  return static_cast<float*>(t.data);
}

// ---- sums whose rounding is the point ------------------------------------------------------------------------------

void require_ordered(const char* operation, std::initializer_list<const Tensor*> terms, const Tensor& out,
                     const SumOptions& options) {
  const Tensor& first = **terms.begin();
  require_dtype(operation, first, {DType::f32, DType::bf16, DType::f16});
  for (const Tensor* t : terms) {
    require_rank(operation, *t, 1);
    require_like(operation, first, *t);
  }
  require_number(operation, "out", out, "the sum");
  const DType type = options.accumulator;
  if (type != DType::f32 && type != DType::bf16 && type != DType::f16)
    reject(operation, fmt::format("accumulator {} given; expected fp32, bf16 or fp16", name_of(type)));
  if (options.order == SumOrder::chunked && options.chunk < 1)
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL ": chunk is {}; expected at least 1", operation, options.chunk));
  if (options.order == SumOrder::cascade && (options.lanes < 1 || options.lanes > Cascade::most_lanes))
    refuse(fmt::format("{} on the " ASSAY_DEVICE_LABEL ": {} lanes; expected 1 to {}", operation, options.lanes,
                       Cascade::most_lanes));
}

// ---- feeds ---------------------------------------------------------------------------------------------------------

std::size_t feed_slot_step(std::size_t slots, std::size_t bytes_per_slot, const void* device_memory) {
  if (slots == 0 || bytes_per_slot == 0 || !device_memory)
    refuse(fmt::format("open_feed on the " ASSAY_DEVICE_LABEL
                       ": {} slots of {} bytes in {} memory; expected at least one of each, and device memory",
                       slots, bytes_per_slot, device_memory ? "given" : "no"));
  return (bytes_per_slot + 255) / 256 * 256;
}

void require_feed_slot(const char* operation, std::size_t slot, std::size_t slots) {
  if (slot >= slots)
    refuse(fmt::format("{} of a feed on the " ASSAY_DEVICE_LABEL ": slot {}; expected less than {}", operation, slot,
                       slots));
}

void require_delivery(const Tensor& to, std::size_t bytes_per_slot) {
  require_contiguous("deliver of a feed", to);
  if (to.bytes() > bytes_per_slot)
    refuse(fmt::format("deliver of a feed on the " ASSAY_DEVICE_LABEL ": {} bytes; expected at most {}, a slot's",
                       to.bytes(), bytes_per_slot));
}

// ---- numbers and optimizers ----------------------------------------------------------------------------------------

float* require_number(const char* operation, const char* name, const Tensor& t, const char* of_what) {
  require_dtype(operation, t, {DType::f32});
  require_count(operation, name, t, 1, of_what);
  return static_cast<float*>(t.data);
}

std::int64_t* require_counter(const char* operation, const char* name, const Tensor& t, const char* of_what) {
  require_dtype(operation, t, {DType::i64});
  require_count(operation, name, t, 1, of_what);
  return static_cast<std::int64_t*>(t.data);
}

void* require_state(const char* operation, const char* name, const Tensor& state, const Tensor& parameter) {
  require_dtype(operation, state, {parameter.dtype});
  require_count(operation, name, state, parameter.elements(), "one for each parameter");
  return state.data;
}

void require_momentum(const SgdOptions& options, const Tensor& momentum) {
  if (!momentum)
    refuse(fmt::format("sgd on the " ASSAY_DEVICE_LABEL
                       ": momentum is {} but its buffer is empty; expected one element for each parameter",
                       options.momentum));
}

}  // namespace assay::compute
