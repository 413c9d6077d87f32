// Element-wise operations, bias, SwiGLU, dropout.
#include "cuda_backend.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "scratch_sizes.hpp"

namespace assay::cuda {

DropoutArgs dropout_args(const compute::Dropout& dropout) {
  const DropoutRule rule = dropout_rule(dropout.probability);
  return {rule.drop_below, rule.factor, dropout.seed, dropout.stream, data_of<std::int64_t>(dropout.step)};
}

void CudaBackend::execute(const op::Add& op) {
  if (!preparing()) launch_add(stream(), op.a.dtype, op.a.data, op.b.data, op.out.data, op.a.elements());
}

void CudaBackend::execute(const op::Multiply& op) {
  if (!preparing()) launch_multiply(stream(), op.a.dtype, op.a.data, op.b.data, op.out.data, op.a.elements());
}

void CudaBackend::execute(const op::Scale& op) {
  if (!preparing()) launch_scale(stream(), op.x.dtype, op.x.data, op.factor, op.out.data, op.x.elements());
}

void CudaBackend::execute(const op::SoftCap& op) {
  if (!preparing()) launch_soft_cap(stream(), op.x.dtype, op.x.data, op.cap, op.out.data, op.x.elements());
}

void CudaBackend::execute(const op::ActivationForward& op) {
  if (!preparing()) launch_activation_forward(stream(), op.x.dtype, op.kind, op.x.data, op.y.data, op.x.elements());
}

void CudaBackend::execute(const op::ActivationBackward& op) {
  if (!preparing())
    launch_activation_backward(stream(), op.x.dtype, op.kind, op.x.data, op.dy.data, op.dx.data, op.x.elements());
}

void CudaBackend::execute(const op::BiasAdd& op) {
  if (preparing()) return;
  launch_bias_add(stream(), op.x.dtype, op.bias.dtype, op.x.data, op.bias.data, op.y.data, rows_of(op.x), op.x.dim(-1));
}

void CudaBackend::execute(const op::BiasBackward& op) {
  const std::int64_t rows = rows_of(op.dy), width = op.dy.dim(-1);
  void* const partial =
      scratch(static_cast<std::size_t>(bias_blocks(op.dy.dtype, rows, width) * width) * sizeof(float));
  if (preparing()) return;
  launch_bias_backward(stream(), op.dy.dtype, op.dbias.dtype, op.dy.data, op.dbias.data, op.accumulate, rows, width,
                       static_cast<float*>(partial));
}

static EightBitsOut eight_bits_of(const op::EightBitRows& rows) {
  return {data_of<std::uint8_t>(rows.numbers), data_of<float>(rows.inverse_scale)};
}

void CudaBackend::execute(const op::SwigluForward& op) {
  const SwigluShape shape = swiglu_shape(op);
  if (preparing()) return;
  if (op.eight_bits)
    return launch_swiglu_forward_rows(stream(), op.gate.dtype, op.gate.data, op.up.data, op.h.data, shape,
                                      eight_bits_of(op.eight_bits));
  launch_swiglu_forward(stream(), op.gate.dtype, op.activation, op.gate.data, op.up.data, op.h.data, shape);
}

void CudaBackend::execute(const op::SwigluBackward& op) {
  const SwigluShape shape = swiglu_shape(op);
  if (preparing()) return;
  if (op.eight_bits)
    return launch_swiglu_backward_rows(stream(), op.gate.dtype, op.gate.data, op.up.data, op.dh.data, op.dgate.data,
                                       op.dup.data, op.h.data, shape, eight_bits_of(op.eight_bits));
  launch_swiglu_backward(stream(), op.gate.dtype, op.activation, op.gate.data, op.up.data, op.dh.data, op.dgate.data,
                         op.dup.data, op.h.data, shape);
}

void CudaBackend::execute(const op::ApplyDropout& op) {
  if (preparing()) return;
  launch_dropout(stream(), op.x.dtype, op.x.data, op.y.data, op.x.elements(), dropout_args(op.dropout));
}

void CudaBackend::execute(const op::BiasReluDropoutForward& op) {
  if (preparing() || op.x.elements() == 0) return;
  launch_bias_relu_dropout(stream(), op.x.dtype, op.bias.dtype, op.x.data, op.bias.data, op.y.data, rows_of(op.x),
                           op.x.dim(-1), dropout_args(op.dropout));
}

void CudaBackend::execute(const op::ReluDropoutBackward& op) {
  const float factor = dropout_rule(op.probability).factor;
  if (!preparing())
    launch_relu_dropout_backward(stream(), op.y.dtype, op.y.data, op.dy.data, op.dx.data, factor, op.y.elements());
}

}  // namespace assay::cuda
