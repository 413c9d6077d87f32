// RMS and layer normalisation, and scratch for the gradients by weight and bias.
#include "cuda_backend.hpp"
#include "kernels/dropout_norm.hpp"
#include "kernels/head_norm.hpp"
#include "kernels/norm.hpp"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

// The fields that every normalisation shares: x of [rows, columns].
NormArgs norm_args(const char* operation, const Tensor& x, const Tensor& weight, const Tensor& rstd) {
  require_countable(operation, x);
  NormArgs args{};
  args.type = x.dtype;
  args.weight_type = weight.dtype;
  args.columns = x.dim(-1);
  args.rows = rows_of(x);
  args.x = x.data;
  args.weight = weight.data;
  args.rstd = data_of<float>(rstd);
  return args;
}

void take(NormArgs& args, const op::EightBitRows& eight_bits) {
  args.eight_bits = data_of<std::uint8_t>(eight_bits.numbers);
  args.inverse_scale = data_of<float>(eight_bits.inverse_scale);
}

}  // namespace

void CudaBackend::execute(const op::RmsNormForward& op) {
  NormArgs args = norm_args(op.name, op.x, op.weight, op.rstd);
  args.weight_offset = op.weight_offset;
  args.eps = op.eps;
  args.y = op.y.data;
  take(args, op.eight_bits);
  if (!preparing()) cuda::rms_norm_forward(args, stream());
}

void CudaBackend::execute(const op::AddRmsNormForward& op) {
  NormArgs args = norm_args(op.name, op.x, op.weight, op.rstd);
  args.weight_offset = op.weight_offset;
  args.eps = op.eps;
  args.residual = op.residual.data;
  args.sum = op.sum.data;
  args.y = op.y.data;
  take(args, op.eight_bits);
  if (!preparing()) cuda::rms_norm_forward(args, stream());
}

void CudaBackend::execute(const op::RmsNormBackward& op) {
  NormArgs args = norm_args(op.name, op.x, op.weight, op.rstd);
  args.weight_offset = op.weight_offset;
  args.dy = op.dy.data;
  args.residual = op.residual.data;
  args.dx = op.dx.data;
  args.y = op.y.data;
  take(args, op.eight_bits);
  args.dweight = op.dweight.data;
  args.dweight_type = op.dweight.dtype;
  args.accumulate = op.accumulate;
  args.partials = static_cast<float*>(scratch(norm_partial_floats(args.rows, args.columns) * sizeof(float)));
  if (!preparing()) cuda::rms_norm_backward(args, stream());
}

void CudaBackend::execute(const op::LayerNormForward& op) {
  NormArgs args = norm_args(op.name, op.x, op.weight, op.rstd);
  args.eps = op.eps;
  args.mean = data_of<float>(op.mean);
  args.bias = op.bias.data;
  args.y = op.y.data;
  if (!preparing()) cuda::layer_norm_forward(args, stream());
}

void CudaBackend::execute(const op::LayerNormBackward& op) {
  NormArgs args = norm_args(op.name, op.x, op.weight, op.rstd);
  args.mean = data_of<float>(op.mean);
  args.dy = op.dy.data;
  args.residual = op.residual.data;
  args.dx = op.dx.data;
  args.dweight = op.dweight.data;
  args.dweight_type = op.dweight.dtype;
  args.dbias = op.dbias.data;
  args.dbias_type = op.dbias.dtype;
  args.accumulate = op.accumulate;
  args.partials = static_cast<float*>(scratch(2 * norm_partial_floats(args.rows, args.columns) * sizeof(float)));
  if (!preparing()) cuda::layer_norm_backward(args, stream());
}

// ---- the end of a post-norm block ----------------------------------------------------------------------------------

void CudaBackend::execute(const op::DropoutAddLayerNormForward& op) {
  require_countable(op.name, op.x);
  if (preparing()) return;
  DropoutNormForwardArgs args{};
  args.type = op.x.dtype;
  args.weight_type = op.weight.dtype;
  args.rows = rows_of(op.x);
  args.columns = op.x.dim(-1);
  args.eps = op.eps;
  args.dropout = dropout_args(op.dropout);
  args.x = op.x.data;
  args.bias = op.bias.data;
  args.residual = op.residual.data;
  args.weight = op.weight.data;
  args.norm_bias = op.norm_bias.data;
  args.sum = op.sum.data;
  args.y = op.y.data;
  args.mean = data_of<float>(op.mean);
  args.rstd = data_of<float>(op.rstd);
  dropout_norm_forward(args, stream());
}

void CudaBackend::execute(const op::DropoutAddLayerNormBackward& op) {
  require_countable(op.name, op.sum);
  const std::int64_t rows = rows_of(op.sum), columns = op.sum.dim(-1);
  void* const partials = scratch(dropout_norm_partial_floats(rows, columns) * sizeof(float));
  if (preparing()) return;
  DropoutNormBackwardArgs args{};
  args.type = op.dy.dtype;
  args.weight_type = op.weight.dtype;
  args.dbias_type = op.dbias.dtype;
  args.dweight_type = op.dweight.dtype;
  args.dnorm_bias_type = op.dnorm_bias.dtype;
  args.rows = rows;
  args.columns = columns;
  args.accumulate = op.accumulate;
  args.dropout = dropout_args(op.dropout);
  args.dy = op.dy.data;
  args.sum = op.sum.data;
  args.weight = op.weight.data;
  args.mean = data_of<float>(op.mean);
  args.rstd = data_of<float>(op.rstd);
  args.dsum = op.dsum.data;
  args.dx = op.dx.data;
  args.dbias = op.dbias.data;
  args.dweight = op.dweight.data;
  args.dnorm_bias = op.dnorm_bias.data;
  args.partials = static_cast<float*>(partials);
  dropout_norm_backward(args, stream());
}

// ---- heads, normalised and turned ----------------------------------------------------------------------------------

namespace {

// The fields that both directions share.
template <class Op>
HeadNormArgs head_norm_args(const Op& op) {
  require_countable(op.name, op.x);
  HeadNormArgs args{};
  args.type = op.x.dtype;
  args.weight_type = op.weight.dtype;
  args.shape = head_norm_shape(op);
  args.eps = op.eps;
  args.weight_offset = op.weight_offset;
  args.x = op.x.data;
  args.weight = op.weight.data;
  args.cos = data_of<float>(op.cos);
  args.sin = data_of<float>(op.sin);
  return args;
}

}  // namespace

void CudaBackend::execute(const op::HeadNormRotaryForward& op) {
  HeadNormArgs args = head_norm_args(op);
  args.rotated = op.rotated.data;
  if (!preparing()) head_norm_rotary_forward(args, stream());
}

void CudaBackend::execute(const op::HeadNormRotaryBackward& op) {
  HeadNormArgs args = head_norm_args(op);
  args.partials = static_cast<float*>(scratch(head_norm_partial_floats(op.x.dim(2), op.x.dim(3)) * sizeof(float)));
  args.drotated = op.drotated.data;
  args.dx = op.dx.data;
  args.dweight = op.dweight.data;
  args.dweight_type = op.dweight.dtype;
  args.accumulate = op.accumulate;
  if (!preparing()) head_norm_rotary_backward(args, stream());
}

}  // namespace assay::cuda
