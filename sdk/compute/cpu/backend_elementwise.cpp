// Element-wise operations, bias, SwiGLU, dropout.
#include "cpu_backend.hpp"
#include "kernels/elementwise.hpp"

namespace assay::cpu {

void CpuBackend::execute(const op::Add& op) {
  if (!preparing())
    elementwise_kernels(isa_).add[index_of(op.a.dtype)](op.a.data, op.b.data, op.out.data, op.a.elements());
}

void CpuBackend::execute(const op::Multiply& op) {
  if (!preparing())
    elementwise_kernels(isa_).multiply[index_of(op.a.dtype)](op.a.data, op.b.data, op.out.data, op.a.elements());
}

void CpuBackend::execute(const op::Scale& op) {
  if (!preparing())
    elementwise_kernels(isa_).scale[index_of(op.x.dtype)](op.x.data, op.factor, op.out.data, op.x.elements());
}

void CpuBackend::execute(const op::SoftCap& op) {
  if (!preparing())
    elementwise_kernels(isa_).soft_cap[index_of(op.x.dtype)](op.x.data, op.cap, op.out.data, op.x.elements());
}

void CpuBackend::execute(const op::ActivationForward& op) {
  if (preparing()) return;
  const auto which = static_cast<std::size_t>(op.kind);
  elementwise_kernels(isa_).activation_forward[which][index_of(op.x.dtype)](op.x.data, op.y.data, op.x.elements());
}

void CpuBackend::execute(const op::ActivationBackward& op) {
  if (preparing()) return;
  const auto which = static_cast<std::size_t>(op.kind);
  elementwise_kernels(isa_).activation_backward[which][index_of(op.x.dtype)](op.x.data, op.dy.data, op.dx.data,
                                                                             op.x.elements());
}

void CpuBackend::execute(const op::BiasAdd& op) {
  if (preparing()) return;
  elementwise_kernels(isa_).bias_add[index_of(op.x.dtype)][index_of(op.bias.dtype)](op.x.data, op.bias.data, op.y.data,
                                                                                    rows_of(op.x), op.x.dim(-1));
}

void CpuBackend::execute(const op::BiasBackward& op) {
  const std::int64_t rows = rows_of(op.dy), width = op.dy.dim(-1);
  void* const partial = scratch(static_cast<std::size_t>(bias_blocks(rows) * width) * sizeof(float));
  if (preparing()) return;
  elementwise_kernels(isa_).bias_backward[index_of(op.dy.dtype)][index_of(op.dbias.dtype)](
      op.dy.data, op.dbias.data, op.accumulate, rows, width, static_cast<float*>(partial));
}

static std::size_t of_gelu(Activation activation) { return activation == Activation::gelu_tanh ? 1 : 0; }

void CpuBackend::execute(const op::SwigluForward& op) {
  SwigluShape shape = swiglu_shape(op);
  const Tensor h = or_scratch(op.h, op.gate.dtype, shape.rows, shape.width);
  if (!op.h) shape.h_step = shape.width;
  if (preparing()) return;
  elementwise_kernels(isa_).swiglu_forward[of_gelu(op.activation)][index_of(op.gate.dtype)](op.gate.data, op.up.data,
                                                                                            h.data, shape);
  quantize(op.eight_bits, h);
}

void CpuBackend::execute(const op::SwigluBackward& op) {
  SwigluShape shape = swiglu_shape(op);
  const auto both = [&](void* begin) { return Tensor(begin, op.gate.dtype, {shape.rows, 2 * shape.width}); };
  const Tensor gradients = op.dgate ? both(op.dgate.data) : or_scratch({}, op.gate.dtype, shape.rows, 2 * shape.width);
  if (!op.dgate) shape.dgate_step = shape.dup_step = 2 * shape.width;
  if (preparing()) return;
  void* const dup = op.dgate ? op.dup.data : gradients.slice(1, shape.width, 0).data;
  elementwise_kernels(isa_).swiglu_backward[of_gelu(op.activation)][index_of(op.gate.dtype)](
      op.gate.data, op.up.data, op.dh.data, gradients.data, dup, op.h.data, shape);
  quantize(op.eight_bits, gradients);
}

void CpuBackend::execute(const op::ApplyDropout& op) {
  if (preparing()) return;
  elementwise_kernels(isa_).dropout[index_of(op.x.dtype)](op.x.data, op.y.data, op.x.elements(),
                                                          dropout_args(op.dropout));
}

void CpuBackend::execute(const op::BiasReluDropoutForward& op) {
  if (preparing() || op.x.elements() == 0) return;
  elementwise_kernels(isa_).bias_relu_dropout[index_of(op.x.dtype)][index_of(op.bias.dtype)](
      op.x.data, op.bias.data, op.y.data, rows_of(op.x), op.x.dim(-1), dropout_args(op.dropout));
}

void CpuBackend::execute(const op::ReluDropoutBackward& op) {
  const float factor = dropout_rule(op.probability).factor;
  if (preparing()) return;
  elementwise_kernels(isa_).relu_dropout_backward[index_of(op.y.dtype)](op.y.data, op.dy.data, op.dx.data, factor,
                                                                        op.y.elements());
}

}  // namespace assay::cpu
