// RMS and layer normalisation, and scratch for the gradients by weight and bias.
#include <algorithm>

#include "cpu_backend.hpp"
#include "kernels/head_norm.hpp"
#include "kernels/norm.hpp"

namespace assay::cpu {
namespace {

NormTypes norm_types(const Tensor& x, const Tensor& weight) {
  if (x.dtype == DType::f32) return NormTypes::f32;
  return weight.dtype == DType::f32 ? NormTypes::bf16_with_f32_weight : NormTypes::bf16;
}

// The fields that every normalisation shares: x of [rows, columns].
NormArgs norm_args(const Tensor& x, const Tensor& weight, const Tensor& rstd) {
  NormArgs args{};
  args.types = norm_types(x, weight);
  args.columns = x.dim(-1);
  args.rows = rows_of(x);
  args.x = x.data;
  args.weight = weight.data;
  args.rstd = data_of<float>(rstd);
  return args;
}

std::int64_t row_blocks(const NormArgs& args) { return std::min(args.rows, max_norm_row_blocks); }

// Of so many blocks, with all elements of `total` each.
void add_partials(const NormKernels& kernels, const float* partials, std::int64_t blocks, const Tensor& total) {
  if (total.dtype == DType::f32)
    kernels.add_partials_f32(partials, blocks, total.elements(), data_of<float>(total));
  else
    kernels.add_partials_bf16(partials, blocks, total.elements(), data_of<std::uint16_t>(total));
}

void add_partials(const NormKernels& kernels, const float* partials, const NormArgs& args, const Tensor& total) {
  add_partials(kernels, partials, row_blocks(args), total);
}

// The fields that both directions share.
template <class Op>
HeadNormArgs head_norm_args(const Op& op) {
  HeadNormArgs args{};
  args.types = norm_types(op.x, op.weight);
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

void CpuBackend::execute(const op::RmsNormForward& op) {
  NormArgs args = norm_args(op.x, op.weight, op.rstd);
  args.weight_offset = op.weight_offset;
  args.eps = op.eps;
  const Tensor y = or_scratch(op.y, op.x.dtype, args.rows, args.columns);
  args.y = y.data;
  if (!preparing()) norm_kernels(isa_).rms_forward(args);
  quantize(op.eight_bits, y);
}

void CpuBackend::execute(const op::AddRmsNormForward& op) {
  NormArgs args = norm_args(op.x, op.weight, op.rstd);
  args.weight_offset = op.weight_offset;
  args.eps = op.eps;
  args.residual = op.residual.data;
  args.sum = op.sum.data;
  const Tensor y = or_scratch(op.y, op.x.dtype, args.rows, args.columns);
  args.y = y.data;
  if (!preparing()) norm_kernels(isa_).rms_forward(args);
  quantize(op.eight_bits, y);
}

void CpuBackend::execute(const op::RmsNormBackward& op) {
  NormArgs args = norm_args(op.x, op.weight, op.rstd);
  args.weight_offset = op.weight_offset;
  args.dy = op.dy.data;
  args.dx = op.dx.data;
  args.y = op.y.data;
  args.residual = op.residual.data;
  args.weight_partials =
      static_cast<float*>(scratch(static_cast<std::size_t>(row_blocks(args) * args.columns) * sizeof(float)));
  if (preparing()) return;
  const NormKernels& kernels = norm_kernels(isa_);
  kernels.rms_backward(args);
  if (!op.accumulate) execute(op::Fill{.x = op.dweight, .value = 0});
  add_partials(kernels, args.weight_partials, args, op.dweight);
  quantize(op.eight_bits, op.dx);
}

void CpuBackend::execute(const op::LayerNormForward& op) {
  NormArgs args = norm_args(op.x, op.weight, op.rstd);
  args.eps = op.eps;
  args.mean = data_of<float>(op.mean);
  args.bias = op.bias.data;
  args.y = op.y.data;
  if (!preparing()) norm_kernels(isa_).layer_forward(args);
}

void CpuBackend::execute(const op::LayerNormBackward& op) {
  NormArgs args = norm_args(op.x, op.weight, op.rstd);
  args.mean = data_of<float>(op.mean);
  args.dy = op.dy.data;
  args.dx = op.dx.data;
  args.residual = op.residual.data;
  const std::int64_t partial_elements = row_blocks(args) * args.columns;
  args.weight_partials = static_cast<float*>(scratch(static_cast<std::size_t>(2 * partial_elements) * sizeof(float)));
  if (preparing()) return;
  args.bias_partials = args.weight_partials + partial_elements;
  const NormKernels& kernels = norm_kernels(isa_);
  kernels.layer_backward(args);
  if (!op.accumulate) {
    execute(op::Fill{.x = op.dweight, .value = 0});
    execute(op::Fill{.x = op.dbias, .value = 0});
  }
  add_partials(kernels, args.weight_partials, args, op.dweight);
  add_partials(kernels, args.bias_partials, args, op.dbias);
}

void CpuBackend::execute(const op::DropoutAddLayerNormForward& op) {
  if (preparing()) return;
  NormArgs args = norm_args(op.x, op.weight, op.rstd);
  args.mean = data_of<float>(op.mean);
  args.eps = op.eps;
  args.x_bias = op.bias.data;
  args.residual = op.residual.data;
  args.sum = op.sum.data;
  args.bias = op.norm_bias.data;
  args.y = op.y.data;
  args.dropout = dropout_args(op.dropout);
  norm_kernels(isa_).layer_forward(args);
}

void CpuBackend::execute(const op::DropoutAddLayerNormBackward& op) {
  NormArgs args = norm_args(op.sum, op.weight, op.rstd);
  args.mean = data_of<float>(op.mean);
  const std::int64_t partial_elements = row_blocks(args) * args.columns;
  args.weight_partials = static_cast<float*>(scratch(static_cast<std::size_t>(3 * partial_elements) * sizeof(float)));
  if (preparing()) return;
  args.bias_partials = args.weight_partials + partial_elements;
  if (op.dbias) args.x_bias_partials = args.bias_partials + partial_elements;
  args.dy = op.dy.data;
  args.dx = op.dsum.data;
  args.x_gradient = op.dx.data;
  args.dropout = dropout_args(op.dropout);
  const NormKernels& kernels = norm_kernels(isa_);
  kernels.layer_backward(args);
  const auto finish = [&](const float* partials, const Tensor& total) {
    if (!op.accumulate) execute(op::Fill{.x = total, .value = 0});
    add_partials(kernels, partials, args, total);
  };
  finish(args.weight_partials, op.dweight);
  finish(args.bias_partials, op.dnorm_bias);
  if (op.dbias) finish(args.x_bias_partials, op.dbias);
}

void CpuBackend::execute(const op::HeadNormRotaryForward& op) {
  if (preparing()) return;
  HeadNormArgs args = head_norm_args(op);
  args.rotated = op.rotated.data;
  head_norm_kernels(isa_).forward(args);
}

void CpuBackend::execute(const op::HeadNormRotaryBackward& op) {
  HeadNormArgs args = head_norm_args(op);
  const std::int64_t blocks = head_norm_blocks(args.shape);
  args.weight_partials =
      static_cast<float*>(scratch(static_cast<std::size_t>(blocks * op.dweight.elements()) * sizeof(float)));
  if (preparing()) return;
  args.drotated = op.drotated.data;
  args.dx = op.dx.data;
  head_norm_kernels(isa_).backward(args);
  if (!op.accumulate) execute(op::Fill{.x = op.dweight, .value = 0});
  add_partials(norm_kernels(isa_), args.weight_partials, blocks, op.dweight);
}

}  // namespace assay::cpu
