// Loss, reductions and optimizers: argument checks and scratch. The constants of a step come from device memory.
#include <fmt/format.h>

#include <limits>

#include "cuda_backend.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/ordered_sum.hpp"
#include "kernels/reduction.hpp"

namespace assay::cuda {
namespace {

// ---- cross-entropy -------------------------------------------------------------------------------------------------
CrossEntropyArgs cross_entropy_args(const char* operation, const Tensor& logits, const Tensor& labels) {
  CrossEntropyArgs args{};
  args.labels = require_labels(operation, logits, labels);
  if (logits.dim(-1) > std::numeric_limits<std::int32_t>::max())
    reject(operation, fmt::format("{} columns given; expected fewer than 2^31", logits.dim(-1)));
  args.type = logits.dtype;
  args.logits = logits.data;
  args.columns = logits.dim(-1);
  args.rows = rows_of(logits);
  return args;
}

const float* gradient_factor(const char* operation, const Tensor& loss_scale) {
  return loss_scale ? require_number(operation, "loss_scale", loss_scale, "the factor of the gradient") : nullptr;
}

// ---- reductions ----------------------------------------------------------------------------------------------------
ReductionArgs reduction_args(const char* operation, const Tensor& x, const Tensor& out, float factor, void* partials) {
  require_float(operation, x);
  require_contiguous(operation, x);
  ReductionArgs args{};
  args.type = x.dtype;
  args.count = x.elements();
  args.x = x.data;
  args.factor = factor;
  args.out = require_number(operation, "out", out, "the result");
  args.partials = partials;
  return args;
}

// ---- optimizers ----------------------------------------------------------------------------------------------------
LossScalePointers loss_scale_pointers(const char* operation, const LossScale& loss_scale) {
  LossScalePointers pointers{};
  if (loss_scale.scale) pointers.scale = require_number(operation, "scale", loss_scale.scale, "the loss scale");
  if (loss_scale.nonfinite)
    pointers.nonfinite =
        require_number(operation, "nonfinite", loss_scale.nonfinite, "how many gradients are not finite");
  return pointers;
}

OptimizerArgs optimizer_args(const char* operation, const Tensor& parameter, const Tensor& gradient,
                             const Tensor& compute_copy, const LossScale& loss_scale) {
  require_dtype(operation, parameter, {DType::f32, DType::bf16});
  if (parameter.dtype == DType::f32)
    require_dtype(operation, gradient, {DType::f32, DType::bf16, DType::f16});
  else
    require_dtype(operation, gradient, {DType::bf16});
  require_contiguous(operation, parameter);
  const std::int64_t count = parameter.elements();
  require_count(operation, "gradient", gradient, count, "one for each parameter");
  if (compute_copy) {
    require_dtype(operation, compute_copy, {DType::bf16, DType::f16});
    require_count(operation, "compute_copy", compute_copy, count, "one for each parameter");
  }
  OptimizerArgs args{};
  args.parameter_type = parameter.dtype;
  args.gradient_type = gradient.dtype;
  args.copy_type = compute_copy.dtype;
  args.count = count;
  args.parameter = parameter.data;
  args.gradient = gradient.data;
  args.compute_copy = compute_copy.data;
  args.loss_scale = loss_scale_pointers(operation, loss_scale);
  return args;
}

void set_schedule(const char* operation, const Tensor& step, const Tensor& lr, OptimizerArgs& args) {
  args.step = require_counter(operation, "step", step, step_text);
  args.lr = require_number(operation, "lr", lr, "the learning rate");
}

}  // namespace

void CudaBackend::cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                                        const Tensor& lse) {
  constexpr const char* operation = "cross_entropy_forward";
  CrossEntropyArgs args = cross_entropy_args(operation, logits, labels);
  args.losses = require_row_numbers(operation, "losses", losses, args.rows);
  args.lse = require_row_numbers(operation, "lse", lse, args.rows);
  if (!preparing()) cuda::cross_entropy_forward(args, stream());
}

void CudaBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse, float scale,
                                         const Tensor& loss_scale, const Tensor& dlogits) {
  constexpr const char* operation = "cross_entropy_backward";
  CrossEntropyArgs args = cross_entropy_args(operation, logits, labels);
  args.lse = require_row_numbers(operation, "lse", lse, args.rows);
  require_like(operation, logits, dlogits);
  args.dlogits = dlogits.data;
  args.scale = scale;
  args.loss_scale = gradient_factor(operation, loss_scale);
  if (!preparing()) cuda::cross_entropy_backward(args, stream());
}

void CudaBackend::cross_entropy_in_place(const Tensor& logits, const Tensor& labels, const Tensor& losses, float scale,
                                         const Tensor& loss_scale) {
  constexpr const char* operation = "cross_entropy_in_place";
  CrossEntropyArgs args = cross_entropy_args(operation, logits, labels);
  args.losses = require_row_numbers(operation, "losses", losses, args.rows);
  args.dlogits = logits.data;
  args.scale = scale;
  args.loss_scale = gradient_factor(operation, loss_scale);
  if (!preparing()) cuda::cross_entropy_in_place(args, stream());
}

void CudaBackend::sum(const Tensor& x, const Tensor& out, float factor) {
  const ReductionArgs args = reduction_args("sum", x, out, factor, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::sum(args, stream());
}

void CudaBackend::sum_of_squares(const Tensor& x, const Tensor& out) {
  const ReductionArgs args = reduction_args("sum_of_squares", x, out, 1.0F, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::sum_of_squares(args, stream());
}

void CudaBackend::max_abs(const Tensor& x, const Tensor& out) {
  const ReductionArgs args = reduction_args("max_abs", x, out, 1.0F, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::max_abs(args, stream());
}

void CudaBackend::count_nonfinite(const Tensor& x, const Tensor& out) {
  const ReductionArgs args = reduction_args("count_nonfinite", x, out, 1.0F, scratch(reduction_scratch_bytes));
  if (!preparing()) cuda::count_nonfinite(args, stream());
}

void CudaBackend::ordered_sum(const Tensor& x, const Tensor& out, const SumOptions& options) {
  require_ordered("ordered_sum", {&x}, out, options);
  OrderedSumArgs args{x.dtype, x.elements(), x.data, nullptr, static_cast<float*>(out.data), nullptr, options};
  args.partials = static_cast<float*>(scratch(ordered_sum_partials(x.elements(), options) * sizeof(float)));
  if (!preparing()) cuda::ordered_sum(args, stream());
}

void CudaBackend::ordered_dot(const Tensor& x, const Tensor& y, const Tensor& out, const SumOptions& options) {
  require_ordered("ordered_dot", {&x, &y}, out, options);
  OrderedSumArgs args{x.dtype, x.elements(), x.data, y.data, static_cast<float*>(out.data), nullptr, options};
  args.partials = static_cast<float*>(scratch(ordered_sum_partials(x.elements(), options) * sizeof(float)));
  if (!preparing()) cuda::ordered_sum(args, stream());
}

void CudaBackend::advance(const Tensor& step, const LossScale& loss_scale) {
  std::int64_t* const number = require_counter("advance", "step", step, step_text);
  const LossScalePointers pointers = loss_scale_pointers("advance", loss_scale);
  if (!preparing()) cuda::advance(number, pointers, stream());
}

void CudaBackend::adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v,
                        const Tensor& step, const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy,
                        const LossScale& loss_scale) {
  constexpr const char* operation = "adamw";
  OptimizerArgs args = optimizer_args(operation, parameter, gradient, compute_copy, loss_scale);
  args.first = require_state(operation, "m", m, parameter);
  args.second = require_state(operation, "v", v, parameter);
  set_schedule(operation, step, lr, args);
  args.multiprocessors = multiprocessors_;
  if (!preparing()) cuda::adamw(args, options, stream());
}

void CudaBackend::sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
                      const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy,
                      const LossScale& loss_scale) {
  constexpr const char* operation = "sgd";
  OptimizerArgs args = optimizer_args(operation, parameter, gradient, compute_copy, loss_scale);
  if (options.momentum != 0.0F) {
    require_momentum(options, momentum);
    args.first = require_state(operation, "momentum", momentum, parameter);
  }
  set_schedule(operation, step, lr, args);
  args.multiprocessors = multiprocessors_;
  if (!preparing()) cuda::sgd(args, options, stream());
}

void CudaBackend::update_loss_scale(const LossScale& loss_scale, const Tensor& good_steps, const Tensor& skipped_steps,
                                    const LossScaleOptions& options) {
  constexpr const char* operation = "update_loss_scale";
  if (!loss_scale.scale || !loss_scale.nonfinite)
    throw Error(ASSAY_INVALID_ARGUMENT, fmt::format("{} on the GPU: {} is empty; expected both scale and nonfinite",
                                                    operation, loss_scale.scale ? "nonfinite" : "scale"));
  const LossScalePointers pointers = loss_scale_pointers(operation, loss_scale);
  std::int64_t* const good = require_counter(operation, "good_steps", good_steps, "how many steps went well in a row");
  std::int64_t* const skips = require_counter(operation, "skipped_steps", skipped_steps, "how many steps were skipped");
  if (!preparing()) cuda::update_loss_scale(pointers, good, skips, options, stream());
}

}  // namespace assay::cuda
