// Element-wise operations, bias, SwiGLU, dropout.
#include "cuda_backend.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"

namespace assay::cuda {

DropoutArgs dropout_args(const compute::DropoutRule& rule, const compute::Dropout& dropout) {
  return {rule.drop_below, rule.factor, dropout.seed, dropout.stream,
          static_cast<const std::int64_t*>(dropout.step.data)};
}

void CudaBackend::add(const Tensor& a, const Tensor& b, const Tensor& out) {
  require_alike("add", {&a, &b, &out});
  if (!preparing()) launch_add(stream(), a.dtype, a.data, b.data, out.data, a.elements());
}

void CudaBackend::multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  require_alike("multiply", {&a, &b, &out});
  if (!preparing()) launch_multiply(stream(), a.dtype, a.data, b.data, out.data, a.elements());
}

void CudaBackend::scale(const Tensor& x, float factor, const Tensor& out) {
  require_alike("scale", {&x, &out});
  if (!preparing()) launch_scale(stream(), x.dtype, x.data, factor, out.data, x.elements());
}

void CudaBackend::activation_forward(Activation kind, const Tensor& x, const Tensor& y) {
  require_alike("activation_forward", {&x, &y});
  if (!preparing()) launch_activation_forward(stream(), x.dtype, kind, x.data, y.data, x.elements());
}

void CudaBackend::activation_backward(Activation kind, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  require_alike("activation_backward", {&x, &dy, &dx});
  if (!preparing()) launch_activation_backward(stream(), x.dtype, kind, x.data, dy.data, dx.data, x.elements());
}

void CudaBackend::bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) {
  require_alike("bias_add", {&x, &y});
  require_bias("bias_add", x, bias);
  if (preparing()) return;
  launch_bias_add(stream(), x.dtype, bias.dtype, x.data, bias.data, y.data, rows_of(x), x.dim(-1));
}

void CudaBackend::bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) {
  require_alike("bias_backward", {&dy});
  require_bias("bias_backward", dy, dbias);
  const std::int64_t rows = rows_of(dy), width = dy.dim(-1);
  void* const partial = scratch(static_cast<std::size_t>(bias_blocks(dy.dtype, rows, width) * width) * sizeof(float));
  if (preparing()) return;
  launch_bias_backward(stream(), dy.dtype, dbias.dtype, dy.data, dbias.data, accumulate, rows, width,
                       static_cast<float*>(partial));
}

void CudaBackend::swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) {
  const SwigluShape shape = swiglu_forward_shape("swiglu_forward", gate, up, h);
  if (preparing()) return;
  launch_swiglu_forward(stream(), gate.dtype, gate.data, up.data, h.data, shape);
}

void CudaBackend::swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate,
                                  const Tensor& dup, const Tensor& h) {
  const SwigluShape shape = swiglu_backward_shape("swiglu_backward", gate, up, dh, dgate, dup, h);
  if (preparing()) return;
  launch_swiglu_backward(stream(), gate.dtype, gate.data, up.data, dh.data, dgate.data, dup.data, h.data, shape);
}

void CudaBackend::dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed,
                          std::uint64_t random_stream, const Tensor& step) {
  const DropoutRule rule = dropout_rule(x, y, probability, step);
  if (preparing()) return;
  launch_dropout(stream(), x.dtype, x.data, y.data, x.elements(),
                 dropout_args(rule, {probability, seed, random_stream, step}));
}

void CudaBackend::bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y,
                                            const Dropout& dropout) {
  const DropoutRule rule = bias_relu_dropout_rule(x, bias, y, dropout);
  if (preparing() || x.elements() == 0) return;
  launch_bias_relu_dropout(stream(), x.dtype, bias.dtype, x.data, bias.data, y.data, rows_of(x), x.dim(-1),
                           dropout_args(rule, dropout));
}

void CudaBackend::relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) {
  const float factor = relu_dropout_factor(y, dy, dx, probability);
  if (!preparing()) launch_relu_dropout_backward(stream(), y.dtype, y.data, dy.data, dx.data, factor, y.elements());
}

}  // namespace assay::cuda
