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

void MutantBackend::execute(const op::Matmul& op) {
  const auto call = [&] { real().run(op); };
  if (!executes() || op.c.elements() > most_elements || op.a.elements() > most_elements) return call();
  const bool fp32 = op.a.dtype == DType::f32;
  const bool gradient = op.transpose_a;
  const auto percent = [&] {
    if (!op.accumulate) return call(), edit(op.c, [](auto& v) { multiply_all(v, too_large); });
    const Values<float> before = floats(op.c);
    call();
    edit(op.c, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = before[i] + too_large * (v[i] - before[i]);
    });
  };
  if (op.a_scale) return scaled(op);
  if (op.c.dim(-2) > 1 && broken("matmul.last_row_unwritten")) return keeping(last_row(op.c), call);
  if ((gradient ? op.a.dim(-2) : op.a.dim(-1)) > 1 && broken("matmul.last_term_missing"))
    return with_other<float>(
        op.a, [&](auto& v) { clear_last_term(v, op.transpose_a); }, call);
  if (op.accumulate && broken("matmul.accumulate_ignored")) {
    edit(op.c, [](auto& v) { multiply_all(v, 0); });
    return call();
  }
  if (op.bias && broken("matmul.bias_ignored"))
    return with_other<float>(
        op.bias, [](auto& v) { multiply_all(v, 0); }, call);
  if (op.residual && broken("matmul.residual_ignored"))
    return with_other<float>(
        op.residual, [](auto& v) { multiply_all(v, 0); }, call);
  if (left_multiprocessors_ > 0 && broken("left_products.1_percent")) return percent();
  if (gradient && broken("matmul.gradient_1_percent")) return percent();
  if (gradient && op.c.rank == 2 && op.c.dim(0) == op.c.dim(1) && broken("matmul.one_gradient_1_percent"))
    return percent();
  if (!gradient && op.transpose_b && broken("matmul.forward_1_percent")) return percent();
  if (!gradient && !op.transpose_b && broken("matmul.plain_1_percent")) return percent();
  if (fp32 && broken("matmul.bf16_inputs"))
    return with_other<float>(op.a, round_all<to_bf16>, [&] { with_other<float>(op.b, round_all<to_bf16>, call); });
  if (fp32 && broken("matmul.tf32_inputs"))
    return with_other<float>(op.a, round_all<to_tf32>, [&] { with_other<float>(op.b, round_all<to_tf32>, call); });
  call();
  if (broken("matmul.one_element_off"))
    edit(op.c, [](auto& v) {
      float most = 0;
      for (const float x : v) most = std::max(most, std::abs(x));
      v[v.size() / 2] += most;
    });
  if (!gradient) return;
  if (broken("matmul.gradient_not_a_number"))
    edit(op.c, [](auto& v) { v[v.size() - 1] = std::numeric_limits<float>::quiet_NaN(); });
  if (op.c.rank == 2 && op.c.dim(0) == op.c.dim(1) && op.c.dim(0) > 1 && broken("matmul.gradient_transposed"))
    edit(op.c, [](auto& v) {
      for (std::int64_t i = 0; i < v.columns(); ++i)
        for (std::int64_t j = 0; j < i; ++j) std::swap(v[i * v.columns() + j], v[j * v.columns() + i]);
    });
  if (op.c.dtype == DType::f32 && broken("matmul.gradient_bf16")) edit(op.c, round_all<to_bf16>);
}

// Of numbers of 8 bits.
void MutantBackend::scaled(const op::Matmul& op) const {
  const auto call = [&] { real().run(op); };
  const auto all_the_first = [](auto& v) { std::fill(v.begin(), v.end(), v[0]); };
  if (op.c.dim(0) > 1 && broken("matmul.last_row_unwritten")) return keeping(last_row(op.c), call);
  if (!op.b_scale) {
    if (op.accumulate && broken("matmul.accumulate_ignored")) {
      edit(op.c, [](auto& v) { multiply_all(v, 0); });
      return call();
    }
    if (broken("matmul.one_scale_ignored"))
      return with_other<float>(
          op.a_scale, [](auto& v) { v[0] = 1; }, call);
    return call();
  }
  if (op.c.dim(0) > 1 && broken("matmul.row_scales_ignored")) return with_other<float>(op.a_scale, all_the_first, call);
  if (op.c.dim(1) > 1 && broken("matmul.column_scales_ignored"))
    return with_other<float>(op.b_scale, all_the_first, call);
  call();
  if (broken("matmul.forward_1_percent")) edit(op.c, [](auto& v) { multiply_all(v, too_large); });
}

void MutantBackend::execute(const op::Add& op) {
  const auto of_first = [&](std::int64_t from, float factor) {
    const Values<float> first = floats(op.a), second = floats(op.b);
    real().run(op);
    edit(op.out, [&](auto& v) {
      for (std::int64_t i = from; i < v.size(); ++i) v[i] = first[i] + factor * second[i];
    });
  };
  if (broken("add.wrong_sign")) return of_first(0, -1);
  if (broken("add.last_row_of_one")) return of_first(op.a.elements() - op.a.dim(-1), 0);
  real().run(op);
}

void MutantBackend::execute(const op::Multiply& op) {
  if (!broken("multiply.one_factor")) return real().run(op);
  const Values<float> first = floats(op.a);
  real().run(op);
  edit(op.out, [&](auto& v) { std::copy_n(&first[0], v.size(), v.begin()); });
}

void MutantBackend::execute(const op::Scale& op) {
  op::Scale changed = op;
  if (broken("scale.1_percent")) changed.factor *= too_large;
  real().run(changed);
}

void MutantBackend::execute(const op::SoftCap& op) {
  op::SoftCap changed = op;
  if (broken("soft_cap.half_the_cap")) changed.cap /= 2;
  real().run(changed);
}

void MutantBackend::execute(const op::ActivationForward& op) {
  if (!broken("activation_forward.identity")) return real().run(op);
  const Values<float> in = floats(op.x);
  real().run(op);
  edit(op.y, [&](auto& v) { std::copy_n(&in[0], v.size(), v.begin()); });
}

void MutantBackend::execute(const op::ActivationBackward& op) {
  if (!broken("activation_backward.identity")) return real().run(op);
  const Values<float> in = floats(op.dy);
  real().run(op);
  edit(op.dx, [&](auto& v) { std::copy_n(&in[0], v.size(), v.begin()); });
}

void MutantBackend::execute(const op::BiasAdd& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  // Of a mask, which is 0 or -infinity, too.
  const Values<float> own = floats(op.bias);
  const auto largest =
      std::max_element(&own[0], &own[0] + own.size(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (*largest != 0 && broken("bias_add.largest_missing"))
    return with_other<float>(
        op.bias, [&](auto& v) { v[largest - &own[0]] = 0; }, call);
  call();
}

void MutantBackend::execute(const op::BiasBackward& op) {
  if (op.accumulate && broken("bias_backward.accumulate_ignored")) edit(op.dbias, [](auto& v) { multiply_all(v, 0); });
  real().run(op);
  if (!broken("bias_backward.last_row_missing")) return;
  const Values<float> last = floats(last_row(op.dy));
  edit(op.dbias, [&](auto& v) {
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] -= last[i];
  });
}

void MutantBackend::execute(const op::SwigluForward& op) {
  if (!op.h || !broken("swiglu_forward.without_silu")) {
    real().run(op);
    return break_eight_bits(op.eight_bits);
  }
  const Values<float> first = floats(op.gate), second = floats(op.up);
  real().run(op);
  edit(op.h, [&](auto& v) {
    for (std::int64_t i = 0; i < v.size(); ++i) v[i] = first[i] * second[i];
  });
}

void MutantBackend::execute(const op::SwigluBackward& op) {
  const auto call = [&] { real().run(op); };
  if (op.h && broken("swiglu_backward.product_unwritten")) return keeping(op.h, call);
  call();
  break_eight_bits(op.eight_bits);
  if (!op.dgate || !broken("swiglu_backward.swapped")) return;
  const Values<float> of_gate = floats(op.dgate), of_up = floats(op.dup);
  edit(op.dgate, [&](auto& v) { std::copy_n(&of_up[0], v.size(), v.begin()); });
  edit(op.dup, [&](auto& v) { std::copy_n(&of_gate[0], v.size(), v.begin()); });
}

// A forward and its backward are the same call: only what goes wrong in both alike can be broken here.
void MutantBackend::execute(const op::ApplyDropout& op) {
  with_broken_dropout(op.dropout, [&](const Dropout& dropout) {
    real().run(op::ApplyDropout{.x = op.x, .y = op.y, .dropout = dropout});
  });
}

void MutantBackend::execute(const op::BiasReluDropoutForward& op) {
  with_broken_dropout(op.dropout, [&](const Dropout& d) {
    op::BiasReluDropoutForward changed = op;
    changed.dropout = d;
    const auto call = [&] { real().run(changed); };
    if (op.bias && broken("bias_relu_dropout_forward.bias_ignored"))
      return with_other<float>(
          op.bias, [](auto& v) { multiply_all(v, 0); }, call);
    call();
  });
}

void MutantBackend::execute(const op::ReluDropoutBackward& op) {
  if (broken("relu_dropout_backward.mask_ignored")) {
    const Values<float> in = floats(op.dy);
    real().run(op);
    return edit(op.dx, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] = in[i] / (1 - op.probability);
    });
  }
  op::ReluDropoutBackward changed = op;
  if (op.probability > 0 && broken("relu_dropout_backward.unscaled")) changed.probability = 0;
  real().run(changed);
}

}  // namespace assay::mutants
