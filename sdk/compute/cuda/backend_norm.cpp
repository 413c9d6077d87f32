// RMS and layer normalisation: argument checks, and scratch for the gradients by weight and bias.
#include <fmt/format.h>

#include <limits>

#include "cuda_backend.hpp"
#include "kernels/dropout_norm.hpp"
#include "kernels/norm.hpp"

namespace assay::cuda {
namespace {

void require_countable(const char* operation, std::int64_t columns) {
  if (columns > std::numeric_limits<std::int32_t>::max())
    reject(operation, fmt::format("{} columns given; expected fewer than 2^31", columns));
}

// The fields that every normalisation shares, checked: x of [rows, columns], weight of [columns].
NormArgs norm_args(const char* operation, const Tensor& x, const Tensor& weight, float eps) {
  require_float(operation, x);
  require_contiguous(operation, x);
  require_dtype(operation, weight, {DType::f32, x.dtype});
  if (x.rank == 0 || x.dim(-1) == 0)
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the GPU: x has no columns; expected at least one in its last dimension", operation));
  require_countable(operation, x.dim(-1));
  NormArgs args{};
  args.type = x.dtype;
  args.weight_type = weight.dtype;
  args.columns = x.dim(-1);
  args.rows = x.elements() / args.columns;
  args.eps = eps;
  args.x = x.data;
  args.weight = weight.data;
  return args;
}

}  // namespace

void CudaBackend::rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                                   float eps) {
  constexpr const char* operation = "rms_norm_forward";
  NormArgs args = norm_args(operation, x, weight, eps);
  require_columns(operation, "weight", weight, args.columns);
  require_like(operation, x, y);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.y = y.data;
  if (!preparing()) cuda::rms_norm_forward(args, stream());
}

void CudaBackend::add_rms_norm_forward(const Tensor& x, const Tensor& residual, const Tensor& sum, const Tensor& weight,
                                       const Tensor& y, const Tensor& rstd, float eps) {
  constexpr const char* operation = "add_rms_norm_forward";
  NormArgs args = norm_args(operation, x, weight, eps);
  require_columns(operation, "weight", weight, args.columns);
  for (const Tensor* t : {&residual, &sum, &y}) require_like(operation, x, *t);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.residual = residual.data;
  args.sum = sum.data;
  args.y = y.data;
  if (!preparing()) cuda::rms_norm_forward(args, stream());
}

void CudaBackend::rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                                    const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                                    bool accumulate_dweight, const Tensor& y) {
  constexpr const char* operation = "rms_norm_backward";
  NormArgs args = norm_args(operation, x, weight, 0.0F);
  require_columns(operation, "weight", weight, args.columns);
  for (const Tensor* t : {&dy, &dx}) require_like(operation, x, *t);
  if (residual) require_like(operation, x, residual);
  if (y) {
    require_like(operation, x, y);
    for (const Tensor* t : {&dy, &x, &residual, &dx})
      if (t->data == y.data)
        throw Error(
            ASSAY_INVALID_ARGUMENT,
            fmt::format("{} on the GPU: y is in the place of another tensor; expected one of its own", operation));
  }
  require_gradient(operation, "dweight", x, dweight);
  args.rstd = require_statistic(operation, "rstd", rstd, args.rows);
  args.dy = dy.data;
  args.residual = residual.data;
  args.dx = dx.data;
  args.y = y.data;
  args.dweight = dweight.data;
  args.dweight_type = dweight.dtype;
  args.accumulate = accumulate_dweight;
  args.partials = static_cast<float*>(scratch(norm_partial_floats(args.rows, args.columns) * sizeof(float)));
  if (!preparing()) cuda::rms_norm_backward(args, stream());
}

void CudaBackend::layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
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
  if (!preparing()) cuda::layer_norm_forward(args, stream());
}

void CudaBackend::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
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
  args.residual = residual.data;
  args.dx = dx.data;
  args.dweight = dweight.data;
  args.dweight_type = dweight.dtype;
  args.dbias = dbias.data;
  args.dbias_type = dbias.dtype;
  args.accumulate = accumulate_dweight;
  args.partials = static_cast<float*>(scratch(2 * norm_partial_floats(args.rows, args.columns) * sizeof(float)));
  if (!preparing()) cuda::layer_norm_backward(args, stream());
}

// ---- the end of a post-norm block ----------------------------------------------------------------------------------

void CudaBackend::dropout_add_layer_norm_forward(const Tensor& x, const Tensor& bias, const Tensor& residual,
                                                 const Dropout& dropout, const Tensor& sum, const Tensor& weight,
                                                 const Tensor& norm_bias, const Tensor& y, const Tensor& mean,
                                                 const Tensor& rstd, float eps) {
  const DropoutNormShape shape =
      dropout_norm_forward_shape(x, bias, residual, dropout, sum, weight, norm_bias, y, mean, rstd);
  require_countable("dropout_add_layer_norm_forward", shape.columns);
  if (preparing()) return;
  DropoutNormForwardArgs args{};
  args.type = x.dtype;
  args.weight_type = weight.dtype;
  args.rows = shape.rows;
  args.columns = shape.columns;
  args.eps = eps;
  args.dropout = dropout_args(shape.dropout, dropout);
  args.x = x.data;
  args.bias = bias.data;
  args.residual = residual.data;
  args.weight = weight.data;
  args.norm_bias = norm_bias.data;
  args.sum = sum.data;
  args.y = y.data;
  args.mean = static_cast<float*>(mean.data);
  args.rstd = static_cast<float*>(rstd.data);
  dropout_norm_forward(args, stream());
}

void CudaBackend::dropout_add_layer_norm_backward(const Tensor& dy, const Tensor& sum, const Tensor& weight,
                                                  const Tensor& mean, const Tensor& rstd, const Dropout& dropout,
                                                  const Tensor& dsum, const Tensor& dx, const Tensor& dbias,
                                                  const Tensor& dweight, const Tensor& dnorm_bias, bool accumulate) {
  const DropoutNormShape shape =
      dropout_norm_backward_shape(dy, sum, weight, mean, rstd, dropout, dsum, dx, dbias, dweight, dnorm_bias);
  require_countable("dropout_add_layer_norm_backward", shape.columns);
  void* const partials = scratch(dropout_norm_partial_floats(shape.rows, shape.columns) * sizeof(float));
  if (preparing()) return;
  DropoutNormBackwardArgs args{};
  args.type = dy.dtype;
  args.weight_type = weight.dtype;
  args.dbias_type = dbias.dtype;
  args.dweight_type = dweight.dtype;
  args.dnorm_bias_type = dnorm_bias.dtype;
  args.rows = shape.rows;
  args.columns = shape.columns;
  args.accumulate = accumulate;
  args.dropout = dropout_args(shape.dropout, dropout);
  args.dy = dy.data;
  args.sum = sum.data;
  args.weight = weight.data;
  args.mean = static_cast<const float*>(mean.data);
  args.rstd = static_cast<const float*>(rstd.data);
  args.dsum = dsum.data;
  args.dx = dx.data;
  args.dbias = dbias.data;
  args.dweight = dweight.data;
  args.dnorm_bias = dnorm_bias.data;
  args.partials = static_cast<float*>(partials);
  dropout_norm_backward(args, stream());
}

}  // namespace assay::cuda
