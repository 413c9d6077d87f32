// Loss, reductions and optimizers: scratch, and the constants of a step.
#include <fmt/format.h>

#include <algorithm>
#include <assay/compute/sixteen_bit.hpp>
#include <cmath>
#include <limits>

#include "cpu_backend.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/reduction.hpp"

namespace assay::cpu {
namespace {

// ---- cross-entropy -------------------------------------------------------------------------------------------------
CrossEntropyArgs cross_entropy_args(const Tensor& logits, const Tensor& labels, float soft_cap,
                                    const compute::ClassColumns& classes = {}) {
  CrossEntropyArgs args{};
  args.soft_cap = soft_cap;
  args.labels = data_of<std::int64_t>(labels);
  args.bf16 = logits.dtype == DType::bf16;
  args.logits = logits.data;
  args.columns = logits.dim(-1);
  args.rows = rows_of(logits);
  args.first_class = classes.first;
  args.classes_each = classes.each;
  args.classes = classes.all > 0 ? classes.all : args.columns * classes.each;
  return args;
}

// Loss scaling belongs to fp16, which no operation here serves.
void refuse_loss_scale(const char* operation, const Tensor& scale) {
  if (scale) reject(operation, "a loss scale given; expected none: there is no fp16 here, use bf16");
}

// ---- reductions ----------------------------------------------------------------------------------------------------
ReductionArgs reduction_args(const Tensor& x, const Tensor& out, float factor, void* partials) {
  ReductionArgs args{};
  args.bf16 = x.dtype == DType::bf16;
  args.x = x.data;
  args.count = x.elements();
  args.factor = factor;
  args.out = data_of<float>(out);
  args.partials = static_cast<double*>(partials);
  return args;
}
constexpr std::size_t partials_bytes = reduction_blocks * sizeof(double);

// ---- optimizers ----------------------------------------------------------------------------------------------------
template <class Op>
OptimizerArgs optimizer_args(const Op& op) {
  OptimizerArgs args{};
  args.types = op.parameter.dtype == DType::bf16  ? OptimizerTypes::bf16
               : op.gradient.dtype == DType::bf16 ? OptimizerTypes::f32_with_bf16_gradient
                                                  : OptimizerTypes::f32;
  args.count = op.parameter.elements();
  args.parameter = op.parameter.data;
  args.gradient = op.gradient.data;
  args.compute_copy = data_of<std::uint16_t>(op.compute_copy);
  return args;
}

std::int64_t step_number(const char* operation, const Tensor& step) {
  const std::int64_t number = *data_of<std::int64_t>(step);
  if (number < 1)
    invalid(operation, fmt::format("step is {}; expected at least 1: run op::Advance before the first step", number));
  return number;
}

}  // namespace

void CpuBackend::execute(const op::CrossEntropyForward& op) {
  CrossEntropyArgs args = cross_entropy_args(op.logits, op.labels, op.soft_cap, op.classes);
  args.losses = data_of<float>(op.losses);
  args.lse = data_of<float>(op.lse);
  if (!preparing()) loss_kernels(isa_).cross_entropy_forward(args);
}

void CpuBackend::execute(const op::CrossEntropyBackward& op) {
  refuse_loss_scale(op.name, op.loss_scale);
  CrossEntropyArgs args = cross_entropy_args(op.logits, op.labels, op.soft_cap, op.classes);
  args.lse = data_of<float>(op.lse);
  args.dlogits = op.dlogits.data;
  args.scale = op.scale;
  if (!preparing()) loss_kernels(isa_).cross_entropy_backward(args);
}

void CpuBackend::execute(const op::CrossEntropyInPlace& op) {
  refuse_loss_scale(op.name, op.loss_scale);
  CrossEntropyArgs args = cross_entropy_args(op.logits, op.labels, op.soft_cap);
  args.losses = data_of<float>(op.losses);
  args.dlogits = op.logits.data;
  args.scale = op.scale;
  if (!preparing()) loss_kernels(isa_).cross_entropy_in_place(args);
}

void CpuBackend::execute(const op::Sum& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, op.factor, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).sum(args);
}

void CpuBackend::execute(const op::SumOfSquares& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, 1.0F, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).sum_of_squares(args);
}

void CpuBackend::execute(const op::MaxAbs& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, 1.0F, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).max_abs(args);
}

void CpuBackend::execute(const op::CountNonfinite& op) {
  const ReductionArgs args = reduction_args(op.x, op.out, 1.0F, scratch(partials_bytes));
  if (!preparing()) reduction_kernels(isa_).count_nonfinite(args);
}

void CpuBackend::execute(const op::Advance& op) {
  refuse_loss_scale(op.name, op.loss_scale.scale);
  std::int64_t* const number = data_of<std::int64_t>(op.step);
  if (!preparing()) ++*number;
}

void CpuBackend::execute(const op::AdamW& op) {
  refuse_loss_scale(op.name, op.loss_scale.scale);
  OptimizerArgs args = optimizer_args(op);
  args.first = op.m.data;
  args.second = op.v.data;
  if (op.m.dtype == DType::bf16 && op.parameter.dtype == DType::f32)
    args.types = op.gradient.dtype == DType::bf16 ? OptimizerTypes::f32_with_bf16_gradient_and_moments
                                                  : OptimizerTypes::f32_with_bf16_moments;
  if (preparing()) return;
  const auto number = static_cast<double>(step_number(op.name, op.step));
  const double rate = *data_of<float>(op.lr);
  const double beta1 = op.options.beta1, beta2 = op.options.beta2;
  const AdamWStep constants{.keep = static_cast<float>(1.0 - rate * op.options.weight_decay),
                            .first_new = static_cast<float>(1.0 - beta1),
                            .second_keep = op.options.beta2,
                            .second_new = static_cast<float>(1.0 - beta2),
                            .root_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, number))),
                            .eps = op.options.eps,
                            .rate = static_cast<float>(rate / (1.0 - std::pow(beta1, number)))};
  optimizer_kernels(isa_).adamw(args, constants);
}

void CpuBackend::execute(const op::Sgd& op) {
  refuse_loss_scale(op.name, op.loss_scale.scale);
  OptimizerArgs args = optimizer_args(op);
  if (op.options.momentum != 0.0F) args.first = op.momentum.data;
  if (preparing()) return;
  const SgdStep constants{.rate = *data_of<float>(op.lr),
                          .weight_decay = op.options.weight_decay,
                          .momentum = op.options.momentum,
                          .first = step_number(op.name, op.step) == 1};
  optimizer_kernels(isa_).sgd(args, constants);
}

// The elements of matrix `b` of [B, E].
static void* matrix_at(const Tensor& t, std::int64_t b) { return t.slice(0, b, 1).data; }

void CpuBackend::execute(const op::MuonMomentum& op) {
  refuse_loss_scale(op.name, op.loss_scale.scale);
  if (preparing()) return;
  for (std::int64_t b = 0; b < op.update.dim(0); ++b)
    optimizer_kernels(isa_).muon_momentum({.bf16_gradient = op.gradient.dtype == DType::bf16,
                                           .bf16_momentum = op.momentum.dtype == DType::bf16,
                                           .bf16_update = op.update.dtype == DType::bf16,
                                           .count = op.update.dim(1),
                                           .gradient = matrix_at(op.gradient, b),
                                           .momentum = matrix_at(op.momentum, b),
                                           .update = matrix_at(op.update, b),
                                           .kept = op.options.momentum,
                                           .taken = static_cast<float>(1.0 - static_cast<double>(op.options.momentum)),
                                           .nesterov = op.options.nesterov});
}

void CpuBackend::execute(const op::NormalizeRows& op) {
  void* const partials = scratch(partials_bytes);
  if (preparing()) return;
  for (std::int64_t b = 0; b < op.x.dim(0); ++b) {
    const Tensor row = op.x.slice(0, b, 1);
    float squares = 0;
    reduction_kernels(isa_).sum_of_squares(reduction_args(row, Tensor(&squares, DType::f32, {1}), 1.0F, partials));
    const double norm = std::max(std::sqrt(double{squares}), double{op.eps});
    elementwise_kernels(isa_).scale[index_of(row.dtype)](row.data, static_cast<float>(1 / norm), row.data,
                                                         row.elements());
  }
}

void CpuBackend::execute(const op::MuonUpdate& op) {
  refuse_loss_scale(op.name, op.loss_scale.scale);
  if (preparing()) return;
  const double rate = *data_of<float>(op.lr);
  for (std::int64_t b = 0; b < op.update.dim(0); ++b)
    optimizer_kernels(isa_).muon_update(
        {.bf16_parameter = op.parameter.dtype == DType::bf16,
         .bf16_update = op.update.dtype == DType::bf16,
         .count = op.update.dim(1),
         .parameter = matrix_at(op.parameter, b),
         .update = matrix_at(op.update, b),
         .compute_copy = op.compute_copy ? static_cast<std::uint16_t*>(matrix_at(op.compute_copy, b)) : nullptr,
         .keep = static_cast<float>(1.0 - rate * static_cast<double>(op.options.weight_decay)),
         .rate = static_cast<float>(rate * static_cast<double>(op.options.factor))});
}

// ---- the account of steps ------------------------------------------------------------------------------------------
namespace {

// fp16 too: no arithmetic is done in it here.
double element(const Tensor& t, std::int64_t place) {
  switch (t.dtype) {
    case DType::bf16: return compute::float_of_bf16(static_cast<const std::uint16_t*>(t.data)[place]);
    case DType::f16: return compute::float_of_fp16(static_cast<const std::uint16_t*>(t.data)[place]);
    default: return static_cast<const float*>(t.data)[place];
  }
}

void spoil_element(const Tensor& t, std::int64_t place) {
  constexpr std::uint16_t not_a_number = 0x7fff;  // in bf16 and in fp16
  if (t.dtype == DType::f32)
    static_cast<float*>(t.data)[place] = std::numeric_limits<float>::quiet_NaN();
  else
    static_cast<std::uint16_t*>(t.data)[place] = not_a_number;
}

}  // namespace

void CpuBackend::execute(const op::SpoilPlaces& op) {
  if (preparing()) return;
  if (op.loss) *data_of<float>(op.loss) = std::numeric_limits<float>::quiet_NaN();
  if (!op.x) return;
  const std::int64_t* const places = data_of<std::int64_t>(op.places);
  for (std::int64_t i = 0; i < op.places.elements(); ++i) spoil_element(op.x, places[i]);
}

void CpuBackend::execute(const op::MarkStep& op) {
  if (preparing()) return;
  std::int64_t* const count = data_of<std::int64_t>(op.count);
  float* const row =
      data_of<float>(op.marks) + compute::row_of_mark((*count)++, op.marks.dim(0)) * compute::MarkColumns::count;
  row[compute::MarkColumns::loss] = op.loss ? *data_of<float>(op.loss) : 0;
  const std::int64_t* const places = data_of<std::int64_t>(op.places);
  const auto add_up = [&](const Tensor& t, std::int64_t column) {
    double sum = 0, magnitude = 0;
    for (std::int64_t i = 0; t && i < op.places.elements(); ++i) {
      const double x = element(t, places[i]);
      sum += x;
      magnitude += std::abs(x);
    }
    row[column] = static_cast<float>(sum);
    row[column + 1] = static_cast<float>(magnitude);
  };
  add_up(op.results, compute::MarkColumns::results);
  add_up(op.state, compute::MarkColumns::state);
}

void CpuBackend::execute(const op::UpdateLossScale& op) { refuse_loss_scale(op.name, op.scale); }

}  // namespace assay::cpu
