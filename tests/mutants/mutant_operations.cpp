// Matrix products and element-wise operations, broken.
#include <algorithm>
#include <limits>

#include "mutant_backend.hpp"

namespace assay::mutants {

using compute::DType;

namespace {

// Larger products measure the device's rate, and are no part of a workload's result.
constexpr std::int64_t most_elements = std::int64_t{1} << 20;

// To nearest even, ten bits of mantissa.
float to_tf32(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  if (!std::isfinite(x)) return x;
  bits += 0xfffU + ((bits >> 13) & 1U);
  return std::bit_cast<float>(bits & 0xffffe000U);
}

// In each matrix of the last two dimensions: what is the last term of each sum becomes 0.
void clear_last_term(Values<float>& a, bool transposed) {
  const std::int64_t columns = a.columns(), rows = a.tensor().dim(-2);
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (transposed ? i / columns % rows == rows - 1 : i % columns == columns - 1) a[i] = 0;
}

void multiply_all(Values<float>& values, float factor) {
  for (float& value : values) value *= factor;
}

}  // namespace

void MutantBackend::matmul(const Tensor& a, const Tensor& b, const Tensor& c, const MatmulOptions& options) {
  const auto call = [&] { real().matmul(a, b, c, options); };
  if (!executes() || c.elements() > most_elements || a.elements() > most_elements) return call();
  const bool fp32 = a.dtype == DType::f32;
  const bool gradient = options.transpose_a;
  const auto percent = [&] {
    if (!options.accumulate) return call(), edit(c, [](auto& v) { multiply_all(v, too_large); });
    const Values<float> before = floats(c);
    call();
    edit(c, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = before[i] + too_large * (v[i] - before[i]);
    });
  };
  if (c.dim(-2) > 1 && broken("matmul.last_row_unwritten")) return keeping(last_row(c), call);
  if ((gradient ? a.dim(-2) : a.dim(-1)) > 1 && broken("matmul.last_term_missing"))
    return with_other<float>(
        a, [&](auto& v) { clear_last_term(v, options.transpose_a); }, call);
  if (options.accumulate && broken("matmul.accumulate_ignored")) {
    edit(c, [](auto& v) { multiply_all(v, 0); });
    return call();
  }
  if (options.bias && broken("matmul.bias_ignored"))
    return with_other<float>(
        options.bias, [](auto& v) { multiply_all(v, 0); }, call);
  if (gradient && broken("matmul.gradient_1_percent")) return percent();
  if (gradient && c.rank == 2 && c.dim(0) == c.dim(1) && broken("matmul.one_gradient_1_percent")) return percent();
  if (!gradient && options.transpose_b && broken("matmul.forward_1_percent")) return percent();
  if (!gradient && !options.transpose_b && broken("matmul.plain_1_percent")) return percent();
  if (fp32 && broken("matmul.bf16_inputs"))
    return with_other<float>(a, round_all<to_bf16>, [&] { with_other<float>(b, round_all<to_bf16>, call); });
  if (fp32 && broken("matmul.tf32_inputs"))
    return with_other<float>(a, round_all<to_tf32>, [&] { with_other<float>(b, round_all<to_tf32>, call); });
  call();
  if (broken("matmul.one_element_off"))
    edit(c, [](auto& v) {
      float most = 0;
      for (const float x : v) most = std::max(most, std::abs(x));
      v[v.size() / 2] += most;
    });
  if (!gradient) return;
  if (broken("matmul.gradient_not_a_number"))
    edit(c, [](auto& v) { v[v.size() - 1] = std::numeric_limits<float>::quiet_NaN(); });
  if (c.rank == 2 && c.dim(0) == c.dim(1) && c.dim(0) > 1 && broken("matmul.gradient_transposed"))
    edit(c, [](auto& v) {
      for (std::int64_t i = 0; i < v.columns(); ++i)
        for (std::int64_t j = 0; j < i; ++j) std::swap(v[i * v.columns() + j], v[j * v.columns() + i]);
    });
  if (c.dtype == DType::f32 && broken("matmul.gradient_bf16")) edit(c, round_all<to_bf16>);
}

void MutantBackend::add(const Tensor& a, const Tensor& b, const Tensor& out) {
  const auto of_first = [&](std::int64_t from, float factor) {
    const Values<float> first = floats(a), second = floats(b);
    real().add(a, b, out);
    edit(out, [&](auto& v) {
      for (std::int64_t i = from; i < v.size(); ++i) v[i] = first[i] + factor * second[i];
    });
  };
  if (broken("add.wrong_sign")) return of_first(0, -1);
  if (broken("add.last_row_of_one")) return of_first(a.elements() - a.dim(-1), 0);
  real().add(a, b, out);
}

void MutantBackend::multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  if (!broken("multiply.one_factor")) return real().multiply(a, b, out);
  const Values<float> first = floats(a);
  real().multiply(a, b, out);
  edit(out, [&](auto& v) { std::copy_n(&first[0], v.size(), v.begin()); });
}

void MutantBackend::scale(const Tensor& x, float factor, const Tensor& out) {
  real().scale(x, broken("scale.1_percent") ? factor * too_large : factor, out);
}

void MutantBackend::activation_forward(Activation kind, const Tensor& x, const Tensor& y) {
  if (!broken("activation_forward.identity")) return real().activation_forward(kind, x, y);
  const Values<float> in = floats(x);
  real().activation_forward(kind, x, y);
  edit(y, [&](auto& v) { std::copy_n(&in[0], v.size(), v.begin()); });
}

void MutantBackend::activation_backward(Activation kind, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  if (!broken("activation_backward.identity")) return real().activation_backward(kind, x, dy, dx);
  const Values<float> in = floats(dy);
  real().activation_backward(kind, x, dy, dx);
  edit(dx, [&](auto& v) { std::copy_n(&in[0], v.size(), v.begin()); });
}

void MutantBackend::bias_add(const Tensor& x, const Tensor& bias, const Tensor& y) {
  const auto call = [&] { real().bias_add(x, bias, y); };
  if (!executes()) return call();
  // Of a mask, which is 0 or -infinity, too.
  const Values<float> own = floats(bias);
  const auto largest =
      std::max_element(&own[0], &own[0] + own.size(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (*largest != 0 && broken("bias_add.largest_missing"))
    return with_other<float>(
        bias, [&](auto& v) { v[largest - &own[0]] = 0; }, call);
  call();
}

void MutantBackend::bias_backward(const Tensor& dy, const Tensor& dbias, bool accumulate) {
  if (accumulate && broken("bias_backward.accumulate_ignored")) edit(dbias, [](auto& v) { multiply_all(v, 0); });
  real().bias_backward(dy, dbias, accumulate);
  if (!broken("bias_backward.last_row_missing")) return;
  const Values<float> last = floats(last_row(dy));
  edit(dbias, [&](auto& v) {
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] -= last[i];
  });
}

void MutantBackend::swiglu_forward(const Tensor& gate, const Tensor& up, const Tensor& h) {
  if (!broken("swiglu_forward.without_silu")) return real().swiglu_forward(gate, up, h);
  const Values<float> first = floats(gate), second = floats(up);
  real().swiglu_forward(gate, up, h);
  edit(h, [&](auto& v) {
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] = first[i] * second[i];
  });
}

void MutantBackend::swiglu_backward(const Tensor& gate, const Tensor& up, const Tensor& dh, const Tensor& dgate,
                                    const Tensor& dup, const Tensor& h) {
  const auto call = [&] { real().swiglu_backward(gate, up, dh, dgate, dup, h); };
  if (h && broken("swiglu_backward.product_unwritten")) return keeping(h, call);
  call();
  if (!broken("swiglu_backward.swapped")) return;
  const Values<float> of_gate = floats(dgate), of_up = floats(dup);
  edit(dgate, [&](auto& v) { std::copy_n(&of_up[0], v.size(), v.begin()); });
  edit(dup, [&](auto& v) { std::copy_n(&of_gate[0], v.size(), v.begin()); });
}

// A forward and its backward are the same call: only what goes wrong in both alike can be broken here.
void MutantBackend::dropout(const Tensor& x, const Tensor& y, float probability, std::uint64_t seed,
                            std::uint64_t stream, const Tensor& step) {
  with_broken_dropout({probability, seed, stream, step},
                      [&](const Dropout& d) { real().dropout(x, y, d.probability, d.seed, d.stream, d.step); });
}

void MutantBackend::bias_relu_dropout_forward(const Tensor& x, const Tensor& bias, const Tensor& y,
                                              const Dropout& dropout) {
  with_broken_dropout(dropout, [&](const Dropout& d) {
    const auto call = [&] { real().bias_relu_dropout_forward(x, bias, y, d); };
    if (bias && broken("bias_relu_dropout_forward.bias_ignored"))
      return with_other<float>(
          bias, [](auto& v) { multiply_all(v, 0); }, call);
    call();
  });
}

void MutantBackend::relu_dropout_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, float probability) {
  if (broken("relu_dropout_backward.mask_ignored")) {
    const Values<float> in = floats(dy);
    real().relu_dropout_backward(y, dy, dx, probability);
    return edit(dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = in[i] / (1 - probability);
    });
  }
  const bool unscaled = probability > 0 && broken("relu_dropout_backward.unscaled");
  real().relu_dropout_backward(y, dy, dx, unscaled ? 0 : probability);
}

}  // namespace assay::mutants
