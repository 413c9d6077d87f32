// RMS and layer normalisation: argument checks, and scratch for the gradients by weight and bias.
#include <fmt/format.h>

#include <algorithm>

#include "cpu_backend.hpp"
#include "kernels/norm.hpp"

namespace assay::cpu {
namespace {

NormTypes norm_types(const Tensor& x, const Tensor& weight) {
  if (x.dtype == DType::f32) return NormTypes::f32;
  return weight.dtype == DType::f32 ? NormTypes::bf16_with_f32_weight : NormTypes::bf16;
}

// The fields that every normalisation shares, checked: x of [rows, columns], weight of [columns].
NormArgs norm_args(const char* operation, const Tensor& x, const Tensor& weight, float eps) {
  require_float(operation, x);
  require_contiguous(operation, x);
  require_dtype(operation, weight, {DType::f32, x.dtype});
  if (x.rank == 0 || x.dim(-1) == 0)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the CPU: x has no columns; expected at least one in its last dimension", operation));
  NormArgs args{};
  args.types = norm_types(x, weight);
  args.columns = x.dim(-1);
  args.rows = x.elements() / args.columns;
  args.eps = eps;
  args.x = x.data;
  args.weight = weight.data;
  return args;
}

// The fields of a normalisation whose tensors are checked.
NormArgs dropout_norm_args(const DropoutNormShape& shape, const Tensor& x, const Tensor& weight, const Tensor& mean,
                           const Tensor& rstd) {
  NormArgs args{};
  args.types = norm_types(x, weight);
  args.rows = shape.rows;
  args.columns = shape.columns;
  args.x = x.data;
  args.weight = weight.data;
  args.mean = static_cast<float*>(mean.data);
  args.rstd = static_cast<float*>(rstd.data);
  return args;
}

std::int64_t row_blocks(const NormArgs& args) { return std::min(args.rows, max_norm_row_blocks); }

void add_partials(const NormKernels& kernels, const float* partials, const NormArgs& args, const Tensor& total) {
  if (total.dtype == DType::f32)
    kernels.add_partials_f32(partials, row_blocks(args), args.columns, static_cast<float*>(total.data));
  else
    kernels.add_partials_bf16(partials, row_blocks(args), args.columns, static_cast<std::uint16_t*>(total.data));
}

}  // namespace

void CpuBackend::rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                                  float eps) {
  constexpr const char* operation = "rms_norm_forward";
  NormArgs args = norm_args(operation, x, weight, eps);
  require_columns(operation, "weight", weight, args.columns);
  require_like(operation, x, y);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.y = y.data;
  if (!preparing()) norm_kernels(isa_).rms_forward(args);
}

void CpuBackend::add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                                      const Tensor& y, const Tensor& rstd, float eps) {
  constexpr const char* operation = "add_rms_norm_forward";
  NormArgs args = norm_args(operation, x, weight, eps);
  require_columns(operation, "weight", weight, args.columns);
  for (const Tensor* t : {&residual, &sum, &y}) require_like(operation, x, *t);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.residual = residual.data;
  args.sum = sum.data;
  args.y = y.data;
  if (!preparing()) norm_kernels(isa_).rms_forward(args);
}

void CpuBackend::rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                                   const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                                   bool accumulate_dweight, const Tensor& y) {
  constexpr const char* operation = "rms_norm_backward";
  NormArgs args = norm_args(operation, x, weight, 0.0F);
  require_columns(operation, "weight", weight, args.columns);
  for (const Tensor* t : {&dy, &dx}) require_like(operation, x, *t);
  for (const Tensor* t : {&residual, &y})
    if (*t) require_like(operation, x, *t);
  require_gradient(operation, "dweight", x, dweight);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.dy = dy.data;
  args.dx = dx.data;
  args.y = y.data;
  args.residual = residual.data;
  args.weight_partials =
      static_cast<float*>(scratch(static_cast<std::size_t>(row_blocks(args) * args.columns) * sizeof(float)));
  if (preparing()) return;
  const NormKernels& kernels = norm_kernels(isa_);
  kernels.rms_backward(args);
  if (!accumulate_dweight) fill(dweight, 0.0);
  add_partials(kernels, args.weight_partials, args, dweight);
}

void CpuBackend::layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                                    const Tensor& mean, const Tensor& rstd, float eps) {
  constexpr const char* operation = "layer_norm_forward";
  NormArgs args = norm_args(operation, x, weight, eps);
  require_columns(operation, "weight", weight, args.columns);
  require_dtype(operation, bias, {weight.dtype});
  require_columns(operation, "bias", bias, args.columns);
  require_like(operation, x, y);
  args.mean = require_statistic(operation, "mean", mean, args.rows);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.bias = bias.data;
  args.y = y.data;
  if (!preparing()) norm_kernels(isa_).layer_forward(args);
}

void CpuBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                     const Tensor& rstd, const Tensor& residual, const Tensor& dx,
                                     const Tensor& dweight, const Tensor& dbias, bool accumulate_dweight) {
  constexpr const char* operation = "layer_norm_backward";
  NormArgs args = norm_args(operation, x, weight, 0.0F);
  require_columns(operation, "weight", weight, args.columns);
  for (const Tensor* t : {&dy, &dx}) require_like(operation, x, *t);
  if (residual) require_like(operation, x, residual);
  require_gradient(operation, "dweight", x, dweight);
  require_gradient(operation, "dbias", x, dbias);
  args.mean = require_statistic(operation, "mean", mean, args.rows);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.dy = dy.data;
  args.dx = dx.data;
  args.residual = residual.data;
  const std::int64_t partial_elements = row_blocks(args) * args.columns;
  args.weight_partials = static_cast<float*>(scratch(static_cast<std::size_t>(2 * partial_elements) * sizeof(float)));
  if (preparing()) return;
  args.bias_partials = args.weight_partials + partial_elements;
  const NormKernels& kernels = norm_kernels(isa_);
  kernels.layer_backward(args);
  if (!accumulate_dweight) {
    fill(dweight, 0.0);
    fill(dbias, 0.0);
  }
  add_partials(kernels, args.weight_partials, args, dweight);
  add_partials(kernels, args.bias_partials, args, dbias);
}

void CpuBackend::dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                                const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                                const Tensor& norm_bias, const Tensor& y, const Tensor& mean,
                                                const Tensor& rstd, float eps) {
  const DropoutNormShape shape =
      dropout_norm_forward_shape(x, bias, residual, dropout, sum, weight, norm_bias, y, mean, rstd);
  if (preparing()) return;
  NormArgs args = dropout_norm_args(shape, x, weight, mean, rstd);
  args.eps = eps;
  args.x_bias = bias.data;
  args.residual = residual.data;
  args.sum = sum.data;
  args.bias = norm_bias.data;
  args.y = y.data;
  args.dropout = dropout_args(shape.dropout, dropout);
  norm_kernels(isa_).layer_forward(args);
}

void CpuBackend::dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight,
                                                 const Tensor& mean, const Tensor& rstd, const Dropout& dropout,
                                                 const Tensor& dsum, const Tensor& dx, const Tensor& dbias,
                                                 const Tensor& dweight, const Tensor& dnorm_bias, bool accumulate) {
  const DropoutNormShape shape =
      dropout_norm_backward_shape(dy, sum, weight, mean, rstd, dropout, dsum, dx, dbias, dweight, dnorm_bias);
  NormArgs args = dropout_norm_args(shape, sum, weight, mean, rstd);
  const std::int64_t partial_elements = row_blocks(args) * args.columns;
  args.weight_partials = static_cast<float*>(scratch(static_cast<std::size_t>(3 * partial_elements) * sizeof(float)));
  if (preparing()) return;
  args.bias_partials = args.weight_partials + partial_elements;
  if (dbias) args.x_bias_partials = args.bias_partials + partial_elements;
  args.dy = dy.data;
  args.dx = dsum.data;
  args.x_gradient = dx.data;
  args.dropout = dropout_args(shape.dropout, dropout);
  const NormKernels& kernels = norm_kernels(isa_);
  kernels.layer_backward(args);
  const auto finish = [&](const float* partials, const Tensor& total) {
    if (!accumulate) fill(total, 0.0);
    add_partials(kernels, partials, args, total);
  };
  finish(args.weight_partials, dweight);
  finish(args.bias_partials, dnorm_bias);
  if (dbias) finish(args.x_bias_partials, dbias);
}

}  // namespace assay::cpu
