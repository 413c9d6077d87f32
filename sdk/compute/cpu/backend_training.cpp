// Loss, reductions and optimizers: argument checks, scratch, and the constants of a step.
#include <fmt/format.h>

#include <cmath>

#include "cpu_backend.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reduction.hpp"

namespace assay::cpu {
namespace {

// ---- cross-entropy -------------------------------------------------------------------------------------------------
CrossEntropyArgs cross_entropy_args(const char* operation, const Tensor& logits, const Tensor& labels) {
  CrossEntropyArgs args{};
  args.labels = require_labels(operation, logits, labels);
  args.bf16 = logits.dtype == DType::bf16;
  args.logits = logits.data;
  args.columns = logits.dim(-1);
  args.rows = rows_of(logits);
  return args;
}

// Loss scaling belongs to fp16, which no operation here serves.
void refuse_loss_scale(const char* operation, const Tensor& scale) {
  if (scale) reject(operation, "a loss scale given; expected none: there is no fp16 here, use bf16");
}

// ---- reductions ----------------------------------------------------------------------------------------------------
ReductionArgs reduction_args(const char* operation, const Tensor& x, const Tensor& out, float factor, void* partials) {
  require_float(operation, x);
  require_contiguous(operation, x);
  ReductionArgs args{};
  args.bf16 = x.dtype == DType::bf16;
  args.x = x.data;
  args.count = x.elements();
  args.factor = factor;
  args.out = require_number(operation, "out", out, "the result");
  args.partials = static_cast<double*>(partials);
  return args;
}
constexpr std::size_t partials_bytes = reduction_blocks * sizeof(double);

// ---- optimizers ----------------------------------------------------------------------------------------------------
OptimizerArgs optimizer_args(const char* operation, const Tensor& parameter, const Tensor& gradient,
                             const Tensor& compute_copy) {
  require_dtype(operation, parameter, {DType::f32, DType::bf16});
  require_dtype(operation, gradient, {DType::bf16, parameter.dtype});
  require_contiguous(operation, parameter);
  const std::int64_t count = parameter.elements();
  require_count(operation, "gradient", gradient, count, "one for each parameter");
  if (compute_copy) {
    require_dtype(operation, compute_copy, {DType::bf16});
    require_count(operation, "compute_copy", compute_copy, count, "one for each parameter");
  }
  OptimizerArgs args{};
  args.types = parameter.dtype == DType::bf16  ? OptimizerTypes::bf16
               : gradient.dtype == DType::bf16 ? OptimizerTypes::f32_with_bf16_gradient
                                               : OptimizerTypes::f32;
  args.count = count;
  args.parameter = parameter.data;
  args.gradient = gradient.data;
  args.compute_copy = static_cast<std::uint16_t*>(compute_copy.data);
  return args;
}

void require_schedule(const char* operation, const Tensor& step, const Tensor& lr) {
  require_counter(operation, "step", step, step_text);
  require_number(operation, "lr", lr, "the learning rate");
}

std::int64_t step_number(const char* operation, const Tensor& step) {
  const std::int64_t number = *static_cast<const std::int64_t*>(step.data);
  if (number < 1)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the CPU: step is {}; expected at least 1: call advance() before the first step",
                            operation, number));
  return number;
}

}  // namespace

void CpuBackend::cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                       const Tensor& lse) {
  constexpr const char* operation = "cross_entropy_forward";
  CrossEntropyArgs args = cross_entropy_args(operation, logits, labels);
  args.losses = require_row_numbers(operation, "losses", losses, args.rows);
  args.lse = require_row_numbers(operation, "lse", lse, args.rows);
  if (!preparing()) loss_kernels(isa_).cross_entropy_forward(args);
}

void CpuBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                                        const Tensor& loss_scale, const Tensor& dlogits) {
  constexpr const char* operation = "cross_entropy_backward";
  refuse_loss_scale(operation, loss_scale);
  CrossEntropyArgs args = cross_entropy_args(operation, logits, labels);
  args.lse = require_row_numbers(operation, "lse", lse, args.rows);
  require_like(operation, logits, dlogits);
  args.dlogits = dlogits.data;
  args.scale = scale;
  if (!preparing()) loss_kernels(isa_).cross_entropy_backward(args);
}

void CpuBackend::cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses, float scale,
                                        const Tensor& loss_scale) {
  constexpr const char* operation = "cross_entropy_in_place";
  refuse_loss_scale(operation, loss_scale);
  CrossEntropyArgs args = cross_entropy_args(operation, logits, labels);
  args.losses = require_row_numbers(operation, "losses", losses, args.rows);
  args.dlogits = logits.data;
  args.scale = scale;
  if (!preparing()) loss_kernels(isa_).cross_entropy_in_place(args);
}

void CpuBackend::sum(const Tensor& x, const Tensor& out, float factor) {
  const ReductionArgs args = reduction_args("sum", x, out, factor, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).sum(args);
}

void CpuBackend::sum_of_squares(const Tensor& x, const Tensor& out) {
  const ReductionArgs args = reduction_args("sum_of_squares", x, out, 1.0F, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).sum_of_squares(args);
}

void CpuBackend::max_abs(const Tensor& x, const Tensor& out) {
  const ReductionArgs args = reduction_args("max_abs", x, out, 1.0F, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).max_abs(args);
}

void CpuBackend::count_nonfinite(const Tensor& x, const Tensor& out) {
  const ReductionArgs args = reduction_args("count_nonfinite", x, out, 1.0F, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).count_nonfinite(args);
}

void CpuBackend::advance(const Tensor& step, const LossScale& loss_scale) {
  refuse_loss_scale("advance", loss_scale.scale);
  std::int64_t* const number = require_counter("advance", "step", step, step_text);
  if (!preparing()) ++*number;
}

void CpuBackend::adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v,
                       const Tensor& step, const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy,
                       const LossScale& loss_scale) {
  constexpr const char* operation = "adamw";
  refuse_loss_scale(operation, loss_scale.scale);
  OptimizerArgs args = optimizer_args(operation, parameter, gradient, compute_copy);
  args.first = require_state(operation, "m", m, parameter);
  args.second = require_state(operation, "v", v, parameter);
  require_schedule(operation, step, lr);
  if (preparing()) return;
  const auto number = static_cast<double>(step_number(operation, step));
  const double rate = *static_cast<const float*>(lr.data);
  const double beta1 = options.beta1, beta2 = options.beta2;
  const AdamWStep constants{.keep = static_cast<float>(1.0 - rate * options.weight_decay),
                            .first_new = static_cast<float>(1.0 - beta1),
                            .second_keep = options.beta2,
                            .second_new = static_cast<float>(1.0 - beta2),
                            .root_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, number))),
                            .eps = options.eps,
                            .rate = static_cast<float>(rate / (1.0 - std::pow(beta1, number)))};
  optimizer_kernels(isa_).adamw(args, constants);
}

void CpuBackend::sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
                     const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy,
                     const LossScale& loss_scale) {
  constexpr const char* operation = "sgd";
  refuse_loss_scale(operation, loss_scale.scale);
  OptimizerArgs args = optimizer_args(operation, parameter, gradient, compute_copy);
  if (options.momentum != 0.0F) {
    require_momentum(options, momentum);
    args.first = require_state(operation, "momentum", momentum, parameter);
  }
  require_schedule(operation, step, lr);
  if (preparing()) return;
  const SgdStep constants{.rate = *static_cast<const float*>(lr.data),
                          .weight_decay = options.weight_decay,
                          .momentum = options.momentum,
                          .first = step_number(operation, step) == 1};
  optimizer_kernels(isa_).sgd(args, constants);
}

void CpuBackend::update_loss_scale(const LossScale& loss_scale, const Tensor&, const Tensor&, const LossScaleOptions&) {
  refuse_loss_scale("update_loss_scale", loss_scale.scale);
}

}  // namespace assay::cpu
