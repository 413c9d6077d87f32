// Checks of mixtures of experts. What lies in device memory (experts, offsets, places, sources) is not looked at.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "common/operation_checks.hpp"

namespace assay::compute {

namespace {

// Contiguous, of this type and shape; `of_what` says which shape that is, in the message.
void require_tensor(const char* operation, const char* name, const Tensor& t, DType type,
                    std::initializer_list<std::int64_t> shape, const char* of_what) {
  require_dtype(operation, t, {type});
  const Tensor expected(nullptr, type, shape);
  if (t.rank != expected.rank || t.shape != expected.shape)
    invalid(operation, fmt::format("{} is {}; expected {}, {}", name, shape_text(t), shape_text(expected), of_what));
  require_contiguous(operation, t);
}

// A matrix of a type that the device computes in.
void require_matrix(const char* operation, const Tensor& t) {
  require_float(operation, t);
  require_rank(operation, t, 2);
  require_contiguous(operation, t);
}

void require_indices(const char* operation, const Tensor& t, int rank) {
  require_dtype(operation, t, {DType::i32});
  require_rank(operation, t, rank);
  require_contiguous(operation, t);
}

// What i32 tensors name.
void require_countable(const char* operation, const char* what, std::int64_t count) {
  if (count > std::numeric_limits<std::int32_t>::max())
    reject(operation, fmt::format("{} {}; expected fewer than 2^31", count, what));
}

void require_finite(const char* operation, const char* name, float value) {
  if (!std::isfinite(value)) invalid(operation, fmt::format("{} is {}; expected a finite number", name, value));
}

void require_rule(const char* operation, const RoutingRule& rule) {
  if (rule.score != ExpertScore::softmax && rule.score != ExpertScore::sigmoid)
    invalid(operation, fmt::format("score {}; expected softmax or sigmoid", static_cast<std::int32_t>(rule.score)));
  require_finite(operation, "factor", rule.factor);
}

// experts is [tokens, k].
void require_choices(const char* operation, const Tensor& experts, std::int64_t tokens, std::int64_t count) {
  require_indices(operation, experts, 2);
  if (experts.dim(0) != tokens)
    invalid(operation,
            fmt::format("experts is {}; expected a row for each of the {} tokens", shape_text(experts), tokens));
  if (experts.dim(1) < 1 || experts.dim(1) > count)
    invalid(operation,
            fmt::format("{} experts for each token; expected 1 to {}, as many as there are", experts.dim(1), count));
  require_countable(operation, "choices", experts.elements());
}

// Scores of [tokens, experts], and what goes with them.
void require_scores(const char* operation, const Tensor& scores, const Tensor& lse) {
  require_dtype(operation, scores, {DType::f32});
  require_rank(operation, scores, 2);
  require_contiguous(operation, scores);
  require_some_columns(operation, scores);
  require_tensor(operation, "lse", lse, DType::f32, {scores.dim(0)}, "one for each token");
}

void require_unit(const char* operation, const GatedUnit& unit) {
  require_finite(operation, "alpha", unit.alpha);
  require_finite(operation, "limit", unit.limit);
  require_finite(operation, "offset", unit.offset);
  if (unit.limit < 0) invalid(operation, fmt::format("limit is {}; expected 0, for none, or more", unit.limit));
}

// Of the shape and type of gate; rows may be apart.
void require_rows_like(const char* operation, const Tensor& gate, const Tensor& t) {
  require_dtype(operation, t, {gate.dtype});
  require_same_shape(operation, gate, t);
  as_rows(operation, t);
}

// What the forward and the backward of a gated unit share.
template <class Op>
void require_gated(const Op& op) {
  require_float(op.name, op.gate);
  require_rank(op.name, op.gate, 2);
  require_rows_like(op.name, op.gate, op.gate);
  require_rows_like(op.name, op.gate, op.up);
  require_dtype(op.name, op.weights, {DType::f32});
  require_contiguous(op.name, op.weights);
  require_countable(op.name, "weights", op.weights.elements());
  require_tensor(op.name, "sources", op.sources, DType::i32, {op.gate.dim(0)}, "one for each row");
  require_unit(op.name, op.unit);
}

}  // namespace

// ---- which experts a token goes to ---------------------------------------------------------------------------------

void check(const op::RouteForward& op) {
  require_matrix(op.name, op.logits);
  require_some_columns(op.name, op.logits);
  const std::int64_t tokens = op.logits.dim(0), experts = op.logits.dim(1);
  if (op.bias) require_tensor(op.name, "bias", op.bias, DType::f32, {experts}, "one for each expert");
  require_choices(op.name, op.experts, tokens, experts);
  const std::int64_t k = op.experts.dim(1);
  if (op.given) require_tensor(op.name, "given", op.given, DType::i32, {tokens, k}, "the shape of experts");
  require_tensor(op.name, "scores", op.scores, DType::f32, {tokens, experts}, "the shape of logits");
  require_tensor(op.name, "lse", op.lse, DType::f32, {tokens}, "one for each token");
  require_tensor(op.name, "weights", op.weights, DType::f32, {tokens, k}, "the shape of experts");
  require_rule(op.name, op.rule);
}

void check(const op::RouteBackward& op) {
  require_scores(op.name, op.scores, op.lse);
  const std::int64_t tokens = op.scores.dim(0), experts = op.scores.dim(1);
  require_choices(op.name, op.experts, tokens, experts);
  require_tensor(op.name, "counts", op.counts, DType::i32, {experts}, "one for each expert");
  require_tensor(op.name, "dweights", op.dweights, DType::f32, {tokens, op.experts.dim(1)}, "the shape of experts");
  require_matrix(op.name, op.dlogits);
  require_same_shape(op.name, op.scores, op.dlogits);
  require_rule(op.name, op.rule);
  require_finite(op.name, "balance", op.balance);
  require_finite(op.name, "z", op.z);
  if (op.z != 0 && op.rule.score == ExpertScore::sigmoid)
    invalid(op.name, fmt::format("z is {} with sigmoid scores; expected 0, or softmax scores", op.z));
  if (op.scale) require_number(op.name, "scale", op.scale, "the factor of both losses");
}

void check(const op::RoutingLosses& op) {
  require_scores(op.name, op.scores, op.lse);
  if (op.scores.dim(0) < 1) invalid(op.name, "no tokens given; expected at least one");
  require_tensor(op.name, "counts", op.counts, DType::i32, {op.scores.dim(1)}, "one for each expert");
  require_tensor(op.name, "losses", op.losses, DType::f32, {2}, "one for balance and one for z");
}

// ---- to the rows of the experts, and back --------------------------------------------------------------------------

void check(const op::GroupRows& op) {
  require_indices(op.name, op.counts, 1);
  const std::int64_t experts = op.counts.dim(0);
  if (experts < 1) invalid(op.name, "no experts given; expected at least one");
  // More choices than experts would be no mistake here: nothing asks that those of a token differ.
  require_indices(op.name, op.experts, 2);
  const std::int64_t choices = op.experts.elements();
  require_countable(op.name, "choices", choices);
  require_tensor(op.name, "offsets", op.offsets, DType::i32, {experts + 1}, "one more than there are experts");
  require_tensor(op.name, "places", op.places, DType::i32, {op.experts.dim(0), op.experts.dim(1)},
                 "the shape of experts");
  require_tensor(op.name, "sources", op.sources, DType::i32, {choices}, "one for each choice");
}

void check(const op::GatherRows& op) {
  require_matrix(op.name, op.x);
  require_some_columns(op.name, op.x);
  require_indices(op.name, op.sources, 1);
  require_tensor(op.name, "rows", op.rows, op.x.dtype, {op.sources.dim(0), op.x.dim(1)}, "a row for each source");
  if (op.copies < 1) invalid(op.name, fmt::format("{} copies; expected at least 1", op.copies));
  require_countable(op.name, "copies of a row", op.copies);
  require_countable(op.name, "rows of x", op.x.dim(0));
  require_countable(op.name, "copies of rows", op.x.dim(0) * op.copies);
}

void check(const op::CombineRows& op) {
  require_matrix(op.name, op.rows);
  require_some_columns(op.name, op.rows);
  require_countable(op.name, "rows", op.rows.dim(0));
  require_indices(op.name, op.places, 2);
  const std::int64_t tokens = op.places.dim(0), columns = op.rows.dim(1);
  if (op.residual) require_tensor(op.name, "residual", op.residual, op.rows.dtype, {tokens, columns}, "the shape of y");
  require_tensor(op.name, "y", op.y, op.rows.dtype, {tokens, columns}, "a row for each row of places");
}

// ---- products by groups of rows ------------------------------------------------------------------------------------

void check(const op::GroupedMatmul& op) {
  require_matrix(op.name, op.a);
  require_some_columns(op.name, op.a);
  require_countable(op.name, "rows", op.a.dim(0));
  require_dtype(op.name, op.b, {op.a.dtype});
  require_rank(op.name, op.b, 3);
  require_contiguous(op.name, op.b);
  const std::int64_t groups = op.b.dim(0), inner = op.transpose_b ? op.b.dim(2) : op.b.dim(1);
  const std::int64_t width = op.transpose_b ? op.b.dim(1) : op.b.dim(2);
  if (groups < 1 || width < 1)
    invalid(op.name, fmt::format("b is {}; expected at least one matrix with a column of c", shape_text(op.b)));
  if (inner != op.a.dim(1))
    invalid(op.name, fmt::format("a is {}, b is {}{}; expected the same inner dimension", shape_text(op.a),
                                 shape_text(op.b), op.transpose_b ? " transposed" : ""));
  require_tensor(op.name, "offsets", op.offsets, DType::i32, {groups + 1}, "one more than there are groups");
  require_tensor(op.name, "c", op.c, op.a.dtype, {op.a.dim(0), width}, "the rows of a by the columns of b");
  if (op.bias) require_tensor(op.name, "bias", op.bias, op.a.dtype, {groups, width}, "a row for each group");
}

namespace {

void require_weight_update(const op::GroupedWeightGradient& op) {
  const WeightUpdate& u = op.update;
  if (!u.any()) {
    for_each_tensor(u, [&](const char* name, const Tensor& t) {
      if (t) invalid(op.name, fmt::format("the update's {} is given and its parameter is not; expected both", name));
    });
    return;
  }
  require_tensor(op.name, "the update's parameter", u.parameter, u.parameter.dtype,
                 {op.dw.dim(0), op.dw.dim(1), op.dw.dim(2)}, "the shape of dw");
  op::AdamW update = op::adamw_of(op);
  if (!op.dw) update.gradient.data = u.parameter.data;  // whose memory is not looked at
  check(update);
}

}  // namespace

void check(const op::GroupedWeightGradient& op) {
  require_matrix(op.name, op.dy);
  require_matrix(op.name, op.x);
  require_dtype(op.name, op.x, {op.dy.dtype});
  require_some_columns(op.name, op.dy);
  require_some_columns(op.name, op.x);
  require_countable(op.name, "rows", op.dy.dim(0));
  if (op.x.dim(0) != op.dy.dim(0))
    invalid(op.name, fmt::format("dy is {}, x is {}; expected as many rows", shape_text(op.dy), shape_text(op.x)));
  require_dtype(op.name, op.dw, {op.dy.dtype, DType::f32});
  require_rank(op.name, op.dw, 3);
  if (!op.dw && (!op.update.any() || !op.update.gradient_place || op.accumulate))
    invalid(op.name, "dw has no memory; expected some, or an update with gradient_place and without accumulate");
  if (op.dw && op.update.gradient_place) invalid(op.name, "gradient_place is given, and dw has memory; expected one");
  if (op.update.gradient_place)
    require_tensor(op.name, "gradient_place", op.update.gradient_place, DType::i64, {1}, "one address");
  const std::int64_t groups = op.dw.dim(0);
  if (groups < 1) invalid(op.name, "no groups given; expected at least one matrix in dw");
  require_tensor(op.name, "dw", op.dw, op.dw.dtype, {groups, op.dy.dim(1), op.x.dim(1)},
                 "the columns of dy by those of x for each group");
  require_tensor(op.name, "offsets", op.offsets, DType::i32, {groups + 1}, "one more than there are groups");
  if (op.dbias) require_tensor(op.name, "dbias", op.dbias, op.dw.dtype, {groups, op.dy.dim(1)}, "a row for each group");
  require_weight_update(op);
}

// ---- gated units ---------------------------------------------------------------------------------------------------

void check(const op::WeightedGatedForward& op) {
  require_gated(op);
  require_like(op.name, op.gate, op.h);
}

void check(const op::WeightedGatedBackward& op) {
  require_gated(op);
  require_like(op.name, op.gate, op.dh);
  require_rows_like(op.name, op.gate, op.dgate);
  require_rows_like(op.name, op.gate, op.dup);
  require_dtype(op.name, op.dweights, {DType::f32});
  require_same_shape(op.name, op.weights, op.dweights);
  require_contiguous(op.name, op.dweights);
  if (op.h) require_like(op.name, op.gate, op.h);
}

}  // namespace assay::compute
