// Element-wise operations, bias, SwiGLU, dropout.
#include "cpu_backend.hpp"
#include "kernels/elementwise.hpp"

namespace assay::cpu {

void CpuBackend::add(const Tensor& a, const Tensor& b, const Tensor& out) {
  require_alike("add", {&a, &b, &out});
  if (!preparing()) elementwise_kernels(isa_).add[index_of(a.dtype)](a.data, b.data, out.data, a.elements());
}

void CpuBackend::multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  require_alike("multiply", {&a, &b, &out});
  if (!preparing()) elementwise_kernels(isa_).multiply[index_of(a.dtype)](a.data, b.data, out.data, a.elements());
}

void CpuBackend::scale(const Tensor& x, float factor, const Tensor& out) {
  require_alike("scale", {&x, &out});
  if (!preparing()) elementwise_kernels(isa_).scale[index_of(x.dtype)](x.data, factor, out.data, x.elements());
}

void CpuBackend::activation_forward(Activation kind, const Tensor& x, const Tensor& y) {
  require_alike("activation_forward", {&x, &y});
  if (preparing()) return;
  const auto which = static_cast<std::size_t>(kind);
  elementwise_kernels(isa_).activation_forward[which][index_of(x.dtype)](x.data, y.data, x.elements());
}

void CpuBackend::activation_backward(Activation kind, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  require_alike("activation_backward", {&x, &dy, &dx});
  if (preparing()) return;
  const auto which = static_cast<std::size_t>(kind);
  elementwise_kernels(isa_).activation_backward[which][index_of(x.dtype)](x.data, dy.data, dx.data, x.elements());
}

void CpuBackend::bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) {
  require_alike("bias_add", {&x, &y});
  require_bias("bias_add", x, bias);
  if (preparing()) return;
  elementwise_kernels(isa_).bias_add[index_of(x.dtype)][index_of(bias.dtype)](x.data, bias.data, y.data, rows_of(x),
                                                                              x.dim(-1));
}

void CpuBackend::bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) {
  require_alike("bias_backward", {&dy});
  require_bias("bias_backward", dy, dbias);
  const std::int64_t rows = rows_of(dy), width = dy.dim(-1);
  void* const partial = scratch(static_cast<std::size_t>(bias_blocks(rows) * width) * sizeof(float));
  if (preparing()) return;
  elementwise_kernels(isa_).bias_backward[index_of(dy.dtype)][index_of(dbias.dtype)](
      dy.data, dbias.data, accumulate, rows, width, static_cast<float*>(partial));
}

void CpuBackend::swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) {
  const SwigluShape shape = swiglu_forward_shape("swiglu_forward", gate, up, h);
  if (preparing()) return;
  elementwise_kernels(isa_).swiglu_forward[index_of(gate.dtype)](gate.data, up.data, h.data, shape);
}

void CpuBackend::swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate,
                                 const Tensor& dup, const Tensor& h) {
  const SwigluShape shape = swiglu_backward_shape("swiglu_backward", gate, up, dh, dgate, dup, h);
  if (preparing()) return;
  elementwise_kernels(isa_).swiglu_backward[index_of(gate.dtype)](gate.data, up.data, dh.data, dgate.data, dup.data,
                                                                  h.data, shape);
}

void CpuBackend::dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed, std::uint64_t stream,
                         const Tensor& step) {
  const DropoutRule rule = dropout_rule(x, y, probability, step);
  if (preparing()) return;
  elementwise_kernels(isa_).dropout[index_of(x.dtype)](x.data, y.data, x.elements(),
                                                       dropout_args(rule, {probability, seed, stream, step}));
}

void CpuBackend::bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y,
                                           const Dropout& dropout) {
  const DropoutRule rule = bias_relu_dropout_rule(x, bias, y, dropout);
  if (preparing() || x.elements() == 0) return;
  elementwise_kernels(isa_).bias_relu_dropout[index_of(x.dtype)][index_of(bias.dtype)](
      x.data, bias.data, y.data, rows_of(x), x.dim(-1), dropout_args(rule, dropout));
}

void CpuBackend::relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) {
  const float factor = relu_dropout_factor(y, dy, dx, probability);
  if (preparing()) return;
  elementwise_kernels(isa_).relu_dropout_backward[index_of(y.dtype)](y.data, dy.data, dx.data, factor, y.elements());
}

}  // namespace assay::cpu
