// Checks of changes of format, reductions, sums whose rounding is the point, optimizers and loss scaling.
#include <fmt/format.h>

#include "common/operation_checks.hpp"

namespace assay::compute {

namespace {

void require_reduction(const char* operation, const Tensor& x, const Tensor& out) {
  require_float(operation, x);
  require_contiguous(operation, x);
  require_number(operation, "out", out, "the result");
}

void require_ordered(const char* operation, const Tensor& x, const Tensor& out, const SumOptions& options) {
  require_dtype(operation, x, {DType::f32, DType::bf16, DType::f16});
  require_rank(operation, x, 1);
  require_contiguous(operation, x);
  require_number(operation, "out", out, "the sum");
  const DType type = options.accumulator;
  if (type != DType::f32 && type != DType::bf16 && type != DType::f16)
    reject(operation, fmt::format("accumulator {} given; expected fp32, bf16 or fp16", name_of(type)));
  if (options.order == SumOrder::chunked && options.chunk < 1)
    invalid(operation, fmt::format("chunk is {}; expected at least 1", options.chunk));
  if (options.order == SumOrder::cascade && (options.lanes < 1 || options.lanes > Cascade::most_lanes))
    invalid(operation, fmt::format("{} lanes; expected 1 to {}", options.lanes, Cascade::most_lanes));
}

void require_loss_scale(const char* operation, const LossScale& loss_scale) {
  if (static_cast<bool>(loss_scale.scale) != static_cast<bool>(loss_scale.nonfinite))
    invalid(operation, fmt::format("{} is empty; expected both scale and nonfinite, or neither",
                                   loss_scale.scale ? "nonfinite" : "scale"));
  if (loss_scale.scale) require_number(operation, "scale", loss_scale.scale, "the loss scale");
  if (loss_scale.nonfinite)
    require_number(operation, "nonfinite", loss_scale.nonfinite, "how many gradients are not finite");
}

void require_state(const char* operation, const char* name, const Tensor& state, const Tensor& parameter) {
  require_dtype(operation, state, {parameter.dtype});
  require_count(operation, name, state, parameter.elements(), "one for each parameter");
}

// What all optimizers share.
template <class Op>
void require_update(const Op& op) {
  const Tensor& parameter = op.parameter;
  require_dtype(op.name, parameter, {DType::f32, DType::bf16});
  require_contiguous(op.name, parameter);
  if (parameter.dtype == DType::bf16)
    require_dtype(op.name, op.gradient, {DType::bf16});
  else
    require_float(op.name, op.gradient);
  require_count(op.name, "gradient", op.gradient, parameter.elements(), "one for each parameter");
  if (op.compute_copy) {
    require_float(op.name, op.compute_copy);
    require_dtype(op.name, op.compute_copy, {DType::bf16, DType::f16});
    require_count(op.name, "compute_copy", op.compute_copy, parameter.elements(), "one for each parameter");
  }
  require_counter(op.name, "step", op.step, step_text);
  require_number(op.name, "lr", op.lr, "the learning rate");
  require_loss_scale(op.name, op.loss_scale);
}

}  // namespace

void check(const op::Quantize& op) {
  require_float(op.name, op.x);
  require_contiguous(op.name, op.x);
  require_some_columns(op.name, op.x);
  require_number(op.name, "max_abs", op.max_abs, "the largest magnitude of x");
  require_dtype(op.name, op.y, {DType::f8_e4m3, DType::f8_e5m2});
  require_same_shape(op.name, op.x, op.y);
  require_contiguous(op.name, op.y);
  if (op.transposed) {
    require_dtype(op.name, op.transposed, {op.y.dtype});
    require_rank(op.name, op.transposed, 2);
    require_contiguous(op.name, op.transposed);
    const std::int64_t columns = op.x.dim(-1), rows = op.x.elements() / columns;
    if (op.transposed.dim(0) != columns || op.transposed.dim(1) != rows)
      invalid(op.name, fmt::format("transposed is {}; expected [{}, {}], the columns and rows of x",
                                   shape_text(op.transposed), columns, rows));
  }
  require_number(op.name, "inverse_scale", op.inverse_scale, "what a number of y stands for more");
}

namespace {

// y is [lines, width], with a scale for each line.
template <class Op>
void require_lines(const Op& op, std::int64_t lines, std::int64_t width, const char* of_what) {
  require_float(op.name, op.x);
  require_rank(op.name, op.x, 2);
  require_contiguous(op.name, op.x);
  require_some_columns(op.name, op.x);
  require_dtype(op.name, op.y, {DType::f8_e4m3, DType::f8_e5m2});
  require_rank(op.name, op.y, 2);
  require_contiguous(op.name, op.y);
  if (op.y.dim(0) != lines || op.y.dim(1) != width)
    invalid(op.name, fmt::format("y is {}; expected [{}, {}]", shape_text(op.y), lines, width));
  require_dtype(op.name, op.inverse_scale, {DType::f32});
  require_count(op.name, "inverse_scale", op.inverse_scale, lines, of_what);
  require_contiguous(op.name, op.inverse_scale);
}

}  // namespace

void check(const op::QuantizeRows& op) {
  require_rank(op.name, op.x, 2);
  require_lines(op, op.x.dim(0), op.x.dim(1), "one for each row of x");
}
void check(const op::QuantizeColumns& op) {
  require_rank(op.name, op.x, 2);
  require_lines(op, op.x.dim(1), op.x.dim(0), "one for each column of x");
}

void check(const op::TransposeEightBits& op) {
  require_dtype(op.name, op.x, {DType::f8_e4m3});
  require_dtype(op.name, op.y, {DType::f8_e4m3});
  for (const Tensor* t : std::initializer_list<const Tensor*>{&op.x, &op.y}) {
    require_rank(op.name, *t, 2);
    require_contiguous(op.name, *t);
  }
  const std::int64_t rows = op.x.dim(0);
  if (op.y.dim(0) != op.x.dim(1) || op.y.dim(1) < rows)
    invalid(op.name, fmt::format("y is {}; expected [{}, {} or more], the columns and rows of x", shape_text(op.y),
                                 op.x.dim(1), rows));
  if (static_cast<bool>(op.scale) != static_cast<bool>(op.other_scale) ||
      static_cast<bool>(op.scale) != static_cast<bool>(op.inverse_scale))
    invalid(op.name, "some of scale, other_scale and inverse_scale; expected all of them, or none");
  if (!op.scale) return;
  const auto require_scales = [&](const char* which, const Tensor& t) {
    require_dtype(op.name, t, {DType::f32});
    require_count(op.name, which, t, rows, "one for each row of x");
    require_contiguous(op.name, t);
  };
  require_scales("scale", op.scale);
  require_scales("other_scale", op.other_scale);
  require_number(op.name, "inverse_scale", op.inverse_scale, "what a number of y stands for more");
}

void check(const op::Sum& op) { require_reduction(op.name, op.x, op.out); }
void check(const op::SumOfSquares& op) { require_reduction(op.name, op.x, op.out); }
void check(const op::MaxAbs& op) { require_reduction(op.name, op.x, op.out); }
void check(const op::CountNonfinite& op) { require_reduction(op.name, op.x, op.out); }

void check(const op::OrderedSum& op) { require_ordered(op.name, op.x, op.out, op.options); }

void check(const op::OrderedDot& op) {
  require_ordered(op.name, op.x, op.out, op.options);
  require_like(op.name, op.x, op.y);
}

void check(const op::Advance& op) {
  require_counter(op.name, "step", op.step, step_text);
  require_loss_scale(op.name, op.loss_scale);
}

void check(const op::AdamW& op) {
  require_update(op);
  require_dtype(op.name, op.m, {op.parameter.dtype, DType::bf16});
  require_dtype(op.name, op.v, {op.m.dtype});
  require_count(op.name, "m", op.m, op.parameter.elements(), "one for each parameter");
  require_count(op.name, "v", op.v, op.parameter.elements(), "one for each parameter");
}

void check(const op::Sgd& op) {
  require_update(op);
  if (op.options.momentum == 0.0F) return;
  if (!op.momentum)
    invalid(op.name, fmt::format("momentum is {} but its buffer is empty; expected one element for each parameter",
                                 op.options.momentum));
  require_state(op.name, "momentum", op.momentum, op.parameter);
}

namespace {

// Matrices whose elements are contiguous each, with one step from each matrix to the next.
void require_matrices(const char* operation, const char* name, const Tensor& t, const Tensor& like) {
  require_rank(operation, t, 2);
  if (t.dim(0) != like.dim(0) || t.dim(1) != like.dim(1))
    invalid(operation, fmt::format("{} is {}; expected [{}, {}], as many matrices of as many elements", name,
                                   shape_text(t), like.dim(0), like.dim(1)));
  static_cast<void>(as_rows(operation, t));
}

void require_packed_matrices(const char* operation, const Tensor& t) {
  require_float(operation, t);
  require_dtype(operation, t, {DType::f32, DType::bf16});
  require_rank(operation, t, 2);
  require_contiguous(operation, t);
}

}  // namespace

void check(const op::MuonMomentum& op) {
  require_packed_matrices(op.name, op.update);
  require_float(op.name, op.gradient);
  require_dtype(op.name, op.momentum, {DType::f32, DType::bf16});
  require_matrices(op.name, "gradient", op.gradient, op.update);
  require_matrices(op.name, "momentum", op.momentum, op.update);
  require_loss_scale(op.name, op.loss_scale);
}

void check(const op::NormalizeRows& op) { require_packed_matrices(op.name, op.x); }

void check(const op::MuonUpdate& op) {
  require_packed_matrices(op.name, op.update);
  require_dtype(op.name, op.parameter, {DType::f32, DType::bf16});
  require_matrices(op.name, "parameter", op.parameter, op.update);
  if (op.compute_copy) {
    require_float(op.name, op.compute_copy);
    require_dtype(op.name, op.compute_copy, {DType::bf16, DType::f16});
    require_matrices(op.name, "compute_copy", op.compute_copy, op.update);
  }
  require_number(op.name, "lr", op.lr, "the learning rate");
  require_loss_scale(op.name, op.loss_scale);
}

void check(const op::UpdateLossScale& op) {
  require_number(op.name, "scale", op.scale, "the loss scale");
  require_number(op.name, "nonfinite", op.nonfinite, "how many gradients are not finite");
  require_counter(op.name, "good_steps", op.good_steps, "how many steps went well in a row");
  require_counter(op.name, "skipped_steps", op.skipped_steps, "how many steps were skipped");
}

namespace {

void require_places(const char* operation, const char* name, const Tensor& t, const Tensor& places) {
  require_dtype(operation, t, {DType::f32, DType::bf16, DType::f16});
  require_rank(operation, t, 1);
  require_contiguous(operation, t);
  if (!places) invalid(operation, fmt::format("{} is given and places is empty; expected both, or neither", name));
  require_dtype(operation, places, {DType::i64});
  require_rank(operation, places, 1);
  require_contiguous(operation, places);
}

}  // namespace

void check(const op::SpoilPlaces& op) {
  if (op.loss) require_number(op.name, "loss", op.loss, "the loss");
  if (op.x) require_places(op.name, "x", op.x, op.places);
}

void check(const op::MarkStep& op) {
  require_counter(op.name, "count", op.count, "how many steps there were");
  require_dtype(op.name, op.marks, {DType::f32});
  require_rank(op.name, op.marks, 2);
  require_contiguous(op.name, op.marks);
  if (op.marks.dim(0) < 2 || op.marks.dim(1) != MarkColumns::count)
    invalid(op.name, fmt::format("marks is {}; expected [2 or more, {}]", shape_text(op.marks), MarkColumns::count));
  if (op.loss) require_number(op.name, "loss", op.loss, "the loss");
  if (op.results) require_places(op.name, "results", op.results, op.places);
  if (op.state) require_places(op.name, "state", op.state, op.places);
}

}  // namespace assay::compute
