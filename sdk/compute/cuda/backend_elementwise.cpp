// Element-wise operations, bias, SwiGLU, dropout.
#include <fmt/format.h>

#include <cmath>

#include "cuda_backend.hpp"
#include "kernels/elementwise.hpp"

namespace assay::cuda {
namespace {

// Contiguous, of one shape and one floating-point type.
void require_alike(const char* operation, std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  require_dtype(operation, first, {DType::f32, DType::bf16, DType::f16});
  for (const Tensor* t : tensors) {
    require_dtype(operation, *t, {first.dtype});
    require_same_shape(operation, first, *t);
    require_contiguous(operation, *t);
  }
}

void require_bias(const char* operation, const Tensor& x, const Tensor& bias) {
  require_dtype(operation, bias, {DType::f32, x.dtype});
  require_contiguous(operation, bias);
  if (x.rank == 0 || bias.elements() != x.dim(-1))
    throw Error(ASSAY_INVALID_ARGUMENT,
                fmt::format("{} on the GPU: a bias of {} elements; expected one for each of the {} columns", operation,
                            bias.elements(), x.rank == 0 ? 0 : x.dim(-1)));
}

std::int64_t rows_of(const Tensor& x) { return x.dim(-1) == 0 ? 0 : x.elements() / x.dim(-1); }

}  // namespace

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
  constexpr const char* operation = "swiglu_forward";
  require_dtype(operation, gate, {DType::f32, DType::bf16, DType::f16});
  for (const Tensor* t : {&up, &h}) {
    require_dtype(operation, *t, {gate.dtype});
    require_same_shape(operation, gate, *t);
  }
  const Rows rows = as_rows(operation, gate);
  const SwigluShape shape{rows.count, rows.width, rows.stride, as_rows(operation, up).stride,
                          0,          0,          0,           as_rows(operation, h).stride};
  if (preparing()) return;
  launch_swiglu_forward(stream(), gate.dtype, gate.data, up.data, h.data, shape);
}

void CudaBackend::swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate,
                                  const Tensor& dup, const Tensor& h) {
  constexpr const char* operation = "swiglu_backward";
  require_dtype(operation, gate, {DType::f32, DType::bf16, DType::f16});
  for (const Tensor* t : {&up, &dh, &dgate, &dup, &h}) {
    if (t == &h && !h) continue;
    require_dtype(operation, *t, {gate.dtype});
    require_same_shape(operation, gate, *t);
  }
  const Rows rows = as_rows(operation, gate);
  const SwigluShape shape{rows.count,
                          rows.width,
                          rows.stride,
                          as_rows(operation, up).stride,
                          as_rows(operation, dh).stride,
                          as_rows(operation, dgate).stride,
                          as_rows(operation, dup).stride,
                          h ? as_rows(operation, h).stride : 0};
  if (preparing()) return;
  launch_swiglu_backward(stream(), gate.dtype, gate.data, up.data, dh.data, dgate.data, dup.data, h.data, shape);
}

void CudaBackend::dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed,
                          std::uint64_t random_stream, const Tensor& step) {
  constexpr const char* operation = "dropout";
  require_alike(operation, {&x, &y});
  require_dtype(operation, step, {DType::i64});
  if (!(probability >= 0.0F && probability < 1.0F) || step.elements() != 1)
    throw Error(
        ASSAY_INVALID_ARGUMENT,
        fmt::format("dropout on the GPU: probability {} and a step of {} elements; expected 0 <= probability < 1 "
                    "and one element",
                    probability, step.elements()));
  if (preparing()) return;
  const auto drop_below = static_cast<std::uint32_t>(std::llround(static_cast<double>(probability) * 0x1p32));
  const float factor = static_cast<float>(1.0 / (1.0 - static_cast<double>(probability)));
  launch_dropout(stream(), x.dtype, x.data, y.data, x.elements(), drop_below, factor, seed, random_stream,
                 static_cast<const std::int64_t*>(step.data));
}

}  // namespace assay::cuda
