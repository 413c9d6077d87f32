// Checks of normalisations, softmax, attention and losses.
#include <fmt/format.h>

#include <limits>

#include "common/kernel_arguments.hpp"
#include "common/operation_checks.hpp"

namespace assay::compute {

namespace {

// ---- normalisations: x is [rows, columns] --------------------------------------------------------------------------

void require_norm(const char* operation, const Tensor& x, const Tensor& weight, const Tensor& rstd) {
  require_float(operation, x);
  require_contiguous(operation, x);
  require_dtype(operation, weight, {DType::f32, x.dtype});
  require_some_columns(operation, x);
  require_columns(operation, "weight", weight, x.dim(-1));
  require_statistic(operation, "rstd", rstd, rows_of(x));
}

void require_layer_norm(const char* operation, const Tensor& x, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd) {
  require_norm(operation, x, weight, rstd);
  require_statistic(operation, "mean", mean, rows_of(x));
}

// A vector that goes with the weight.
void require_beside_weight(const char* operation, const char* name, const Tensor& x, const Tensor& weight,
                           const Tensor& vector) {
  require_dtype(operation, vector, {weight.dtype});
  require_columns(operation, name, vector, x.dim(-1));
}

}  // namespace

// Of the forwards, whose y may be in 8 bits alone.
template <class Op>
static void require_norm_result(const Op& op) {
  if (op.y) require_like(op.name, op.x, op.y);
  require_some_result(op.name, "y", op.y, op.eight_bits);
  require_eight_bits(op.name, op.eight_bits, rows_of(op.x), op.x.dim(-1));
}

void check(const op::RmsNormForward& op) {
  require_norm(op.name, op.x, op.weight, op.rstd);
  require_norm_result(op);
}

void check(const op::AddRmsNormForward& op) {
  require_norm(op.name, op.x, op.weight, op.rstd);
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.residual, &op.sum}) require_like(op.name, op.x, *t);
  require_norm_result(op);
}

void check(const op::RmsNormBackward& op) {
  require_norm(op.name, op.x, op.weight, op.rstd);
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.dy, &op.dx}) require_like(op.name, op.x, *t);
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.residual, &op.y})
    if (*t) require_like(op.name, op.x, *t);
  require_gradient(op.name, "dweight", op.x, op.dweight);
  require_eight_bits(op.name, op.eight_bits, rows_of(op.x), op.x.dim(-1));
}

void check(const op::LayerNormForward& op) {
  require_layer_norm(op.name, op.x, op.weight, op.mean, op.rstd);
  require_beside_weight(op.name, "bias", op.x, op.weight, op.bias);
  require_like(op.name, op.x, op.y);
}

void check(const op::LayerNormBackward& op) {
  require_layer_norm(op.name, op.x, op.weight, op.mean, op.rstd);
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.dy, &op.dx}) require_like(op.name, op.x, *t);
  if (op.residual) require_like(op.name, op.x, op.residual);
  require_gradient(op.name, "dweight", op.x, op.dweight);
  require_gradient(op.name, "dbias", op.x, op.dbias);
}

void check(const op::DropoutAddLayerNormForward& op) {
  require_layer_norm(op.name, op.x, op.weight, op.mean, op.rstd);
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.residual, &op.sum, &op.y})
    require_like(op.name, op.x, *t);
  if (op.bias) require_beside_weight(op.name, "bias", op.x, op.weight, op.bias);
  require_beside_weight(op.name, "norm_bias", op.x, op.weight, op.norm_bias);
  require_dropout(op.name, op.dropout);
}

void check(const op::DropoutAddLayerNormBackward& op) {
  require_layer_norm(op.name, op.sum, op.weight, op.mean, op.rstd);
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.dy, &op.dsum}) require_like(op.name, op.sum, *t);
  require_dropout(op.name, op.dropout);
  if (op.dx) {
    require_like(op.name, op.sum, op.dx);
    if (op.dropout.probability == 0.0F)
      invalid(op.name, "dx given where nothing is dropped; expected it empty: dsum is the gradient by x, too");
  }
  if (op.dbias) require_gradient(op.name, "dbias", op.sum, op.dbias);
  require_gradient(op.name, "dweight", op.sum, op.dweight);
  require_gradient(op.name, "dnorm_bias", op.sum, op.dnorm_bias);
}

// ---- softmax and attention -----------------------------------------------------------------------------------------

namespace {

void require_softmax(const char* operation, const Tensor& x, std::initializer_list<const Tensor*> others) {
  require_float(operation, x);
  require_contiguous(operation, x);
  for (const Tensor* t : others) require_like(operation, x, *t);
  require_some_columns(operation, x);
}

// A [batch, time, heads, width] operand; `q` gives the expected type and batch.
void require_operand(const char* operation, const char* name, const Tensor& t, const Tensor& q, std::int64_t time,
                     std::int64_t heads, std::int64_t width) {
  require_rank(operation, t, 4);
  require_dtype(operation, t, {q.dtype});
  if (t.dim(0) != q.dim(0) || t.dim(1) != time || t.dim(2) != heads || t.dim(3) != width)
    invalid(operation, fmt::format("{} is [{}, {}, {}, {}]; expected [{}, {}, {}, {}]", name, t.dim(0), t.dim(1),
                                   t.dim(2), t.dim(3), q.dim(0), time, heads, width));
  if (t.dim(3) > 1 && t.step(3) != 1)
    reject(operation,
           fmt::format("{} has stride {} over the head dimension; expected 1: copy it first", name, t.step(3)));
}

void require_window(const char* operation, std::int64_t window) {
  if (window < 0) invalid(operation, fmt::format("window is {}; expected at least 1 key, or 0 for no bound", window));
}

void require_first_keys(const char* operation, const Tensor& t, std::int64_t batch, std::int64_t queries) {
  require_dtype(operation, t, {DType::i32});
  require_rank(operation, t, 2);
  if (t.dim(0) != batch || t.dim(1) != queries)
    invalid(operation, fmt::format("first_keys is [{}, {}]; expected [{}, {}]", t.dim(0), t.dim(1), batch, queries));
  if (t.dim(1) > 1 && t.step(1) != 1)
    invalid(operation, fmt::format("first_keys has stride {} from query to query; expected 1", t.step(1)));
}

void require_documents(const char* operation, const Tensor& q, const Tensor& k, const AttentionShape& shape) {
  const PackedDocuments& d = shape.documents;
  if (static_cast<bool>(d.first_keys) != static_cast<bool>(d.starts))
    invalid(operation, "one of first_keys and starts of documents given; expected both, or neither");
  if (!d.first_keys) return;
  require_first_keys(operation, d.first_keys, q.dim(0), q.dim(1));
  require_contiguous(operation, d.first_keys);
  require_dtype(operation, d.starts, {DType::i32});
  require_contiguous(operation, d.starts);
  if (q.dim(1) != k.dim(1))
    invalid(operation, fmt::format("{} queries and {} keys given beside documents; expected as many queries as keys",
                                   q.dim(1), k.dim(1)));
  const std::int64_t most = q.dim(0) * q.dim(1) + 1;
  if (d.starts.elements() < 2 || d.starts.elements() > most)
    invalid(operation, fmt::format("starts of documents has {} elements; expected 2 to {}, one more than documents",
                                   d.starts.elements(), most));
  if (d.longest < 1 || d.longest > q.dim(1))
    invalid(operation, fmt::format("the longest document has {} tokens; expected 1 to {}", d.longest, q.dim(1)));
}

void require_sinks(const char* operation, const char* name, const Tensor& t, std::int64_t heads, DType type) {
  require_dtype(operation, t, {DType::f32, type});
  require_contiguous(operation, t);
  require_count(operation, name, t, heads, "one for each head of queries");
}

void require_soft_cap(const char* operation, float soft_cap) {
  if (!(soft_cap >= 0.0F))
    invalid(operation, fmt::format("soft_cap is {}; expected a number above 0, or 0 for none", soft_cap));
}

template <class Op>
void require_sink_gradients(const Op& op) {
  if (static_cast<bool>(op.sinks) != static_cast<bool>(op.dsinks))
    invalid(op.name, "one of sinks and dsinks given; expected both, or neither");
}

template <class Op>
void require_softmax_kind(const Op& op, const Tensor& scores) {
  require_soft_cap(op.name, op.soft_cap);
  if (op.lse) {
    require_dtype(op.name, op.lse, {DType::f32});
    require_contiguous(op.name, op.lse);
    require_count(op.name, "lse", op.lse, rows_of(scores), "one for each row");
  }
  if (!op.sinks) return;
  require_rank(op.name, scores, 4);
  require_sinks(op.name, "sinks", op.sinks, scores.dim(1), scores.dtype);
}

template <class Op>
void require_attention(const Op& op) {
  const Tensor& q = op.q;
  require_rank(op.name, q, 4);
  require_rank(op.name, op.k, 4);
  require_rank(op.name, op.v, 4);
  require_float(op.name, q);
  if (q.dim(3) == 0) invalid(op.name, "the head dimension is 0; expected at least 1");
  if (op.v.dim(3) == 0) invalid(op.name, "the width of values is 0; expected at least 1");
  const std::int64_t queries = q.dim(1), keys = op.k.dim(1), heads = q.dim(2), key_heads = op.k.dim(2);
  if (key_heads == 0 ? heads != 0 : heads % key_heads != 0)
    invalid(op.name, fmt::format("{} heads of queries and {} of keys given; expected a multiple of those of keys",
                                 heads, key_heads));
  const std::int64_t width = q.dim(3), value_width = op.v.dim(3);
  require_operand(op.name, "q", q, q, queries, heads, width);
  require_operand(op.name, "k", op.k, q, keys, key_heads, width);
  require_operand(op.name, "v", op.v, q, keys, key_heads, value_width);
  require_operand(op.name, "out", op.out, q, queries, heads, value_width);
  require_dtype(op.name, op.lse, {DType::f32});
  require_contiguous(op.name, op.lse);
  if (op.lse.elements() != q.dim(0) * q.dim(1) * q.dim(2))
    invalid(op.name, fmt::format("lse has {} elements; expected batch {} x heads {} x queries {}", op.lse.elements(),
                                 q.dim(0), q.dim(2), q.dim(1)));
  if (!(op.shape.scale != 0.0F))
    invalid(op.name, fmt::format("scale is {}; expected another number than 0", op.shape.scale));
  require_dropout(op.name, op.shape.dropout);
  require_window(op.name, op.shape.window);
  require_soft_cap(op.name, op.shape.soft_cap);
  require_documents(op.name, q, op.k, op.shape);
  if (op.sinks) require_sinks(op.name, "sinks", op.sinks, heads, q.dtype);
}

}  // namespace

void check(const op::SoftmaxForward& op) {
  require_softmax(op.name, op.x, {&op.y});
  require_window(op.name, op.window);
  require_softmax_kind(op, op.x);
  if (!op.first_keys) return;
  require_rank(op.name, op.x, 4);
  require_first_keys(op.name, op.first_keys, op.x.dim(0), op.x.dim(2));
}
void check(const op::SoftmaxBackward& op) {
  require_softmax(op.name, op.y, {&op.dx, &op.dy});
  require_softmax_kind(op, op.y);
  if (!op.lse && (op.soft_cap > 0.0F || op.sinks)) invalid(op.name, "no lse given; a soft cap and sinks need it");
  require_sink_gradients(op);
  if (op.dsinks) require_sinks(op.name, "dsinks", op.dsinks, op.y.dim(1), op.y.dtype);
}

void check(const op::AttentionForward& op) { require_attention(op); }

void check(const op::AttentionBackward& op) {
  require_attention(op);
  const auto require_like_operand = [&](const char* name, const Tensor& t, const Tensor& like) {
    require_operand(op.name, name, t, op.q, like.dim(1), like.dim(2), like.dim(3));
  };
  require_like_operand("dout", op.dout, op.out);
  require_like_operand("dq", op.dq, op.q);
  require_like_operand("dk", op.dk, op.k);
  require_like_operand("dv", op.dv, op.v);
  require_sink_gradients(op);
  if (op.dsinks) require_sinks(op.name, "dsinks", op.dsinks, op.q.dim(2), op.q.dtype);
}

// ---- losses --------------------------------------------------------------------------------------------------------

namespace {

void require_logits(const char* operation, const Tensor& logits, const Tensor& labels) {
  require_float(operation, logits);
  require_contiguous(operation, logits);
  if (logits.rank == 0 || logits.dim(-1) == 0)
    invalid(operation, "logits have no columns; expected one for each class");
  require_dtype(operation, labels, {DType::i64});
  require_count(operation, "labels", labels, rows_of(logits), "one for each row of the logits");
}

void require_row_numbers(const char* operation, const char* name, const Tensor& t, const Tensor& logits) {
  require_dtype(operation, t, {DType::f32});
  require_count(operation, name, t, rows_of(logits), "one for each row of the logits");
}

void require_gradient_factor(const char* operation, const Tensor& loss_scale) {
  if (loss_scale) require_number(operation, "loss_scale", loss_scale, "the factor of the gradient");
}

// Whether the columns' classes are among all there are, and of a gradient one for each column.
void require_classes(const char* operation, const ClassColumns& classes, const Tensor& logits, std::int64_t most_each) {
  const std::int64_t columns = logits.dim(-1);
  const bool fits =
      classes.first >= 0 && classes.each >= 1 && classes.each <= most_each &&
      (classes.all == 0 ? classes.first == 0
                        : classes.first <= classes.all && columns <= (classes.all - classes.first) / classes.each);
  if (!fits)
    invalid(operation, std::to_string(columns) + " columns of " + std::to_string(classes.each) + " classes each from " +
                           std::to_string(classes.first) + " on; expected them among the " +
                           std::to_string(classes.all) + " that there are");
}

}  // namespace

void check(const op::CrossEntropyForward& op) {
  require_logits(op.name, op.logits, op.labels);
  require_row_numbers(op.name, "losses", op.losses, op.logits);
  require_row_numbers(op.name, "lse", op.lse, op.logits);
  require_classes(op.name, op.classes, op.logits, std::numeric_limits<std::int64_t>::max());
  require_soft_cap(op.name, op.soft_cap);
}

void check(const op::CrossEntropyBackward& op) {
  require_logits(op.name, op.logits, op.labels);
  require_row_numbers(op.name, "lse", op.lse, op.logits);
  require_like(op.name, op.logits, op.dlogits);
  require_gradient_factor(op.name, op.loss_scale);
  require_classes(op.name, op.classes, op.logits, 1);
  require_soft_cap(op.name, op.soft_cap);
}

void check(const op::CrossEntropyInPlace& op) {
  require_logits(op.name, op.logits, op.labels);
  require_row_numbers(op.name, "losses", op.losses, op.logits);
  require_gradient_factor(op.name, op.loss_scale);
  require_soft_cap(op.name, op.soft_cap);
}

}  // namespace assay::compute
