#include "common/kernel_arguments.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/checks.hpp"

namespace assay::compute {

CopyShape copy_shape(const Tensor& to, const Tensor& from) {
  CopyShape s{{1, 1, 1, 1}, {}, {}};
  int at = 4;  // the dimension last written
  for (int i = to.rank - 1; i >= 0; --i) {
    if (to.dim(i) == 1) continue;
    if (at < 4 && to.step(i) == s.to_step[at] * s.extent[at] && from.step(i) == s.from_step[at] * s.extent[at]) {
      s.extent[at] *= to.dim(i);
      continue;
    }
    --at;
    s.extent[at] = to.dim(i);
    s.to_step[at] = to.step(i);
    s.from_step[at] = from.step(i);
  }
  return s;
}

SwigluShape swiglu_shape(const op::SwigluForward& op) {
  const Rows rows = as_rows(op.name, op.gate);
  return {rows.count, rows.width, rows.stride, as_rows(op.name, op.up).stride,
          0,          0,          0,           op.h ? as_rows(op.name, op.h).stride : 0};
}

SwigluShape swiglu_shape(const op::SwigluBackward& op) {
  const Rows rows = as_rows(op.name, op.gate);
  return {rows.count,
          rows.width,
          rows.stride,
          as_rows(op.name, op.up).stride,
          as_rows(op.name, op.dh).stride,
          op.dgate ? as_rows(op.name, op.dgate).stride : 0,
          op.dup ? as_rows(op.name, op.dup).stride : 0,
          op.h ? as_rows(op.name, op.h).stride : 0};
}

RotaryShape rotary_shape(const op::Rotary& op) {
  const Tensor& x = op.x;
  return {x.dim(0), x.dim(1), x.dim(2), op.cos.dim(1), x.step(0), x.step(1), x.step(2)};
}

RotaryCurve rotary_curve(double theta, const RotaryScaling& s, std::int64_t pairs) {
  constexpr double turn = 2 * std::numbers::pi;
  RotaryCurve curve{.theta = theta};
  if (s.kind == RotaryScalingKind::none) return curve;
  curve.factor = s.factor;
  curve.magnitude = s.applied_magnitude();
  if (s.kind == RotaryScalingKind::linear) {
    curve.constant = 0;
  } else if (s.kind == RotaryScalingKind::llama3) {
    curve.by_frequency = s.original_positions / turn / (s.high - s.low);
    curve.constant = -s.low / (s.high - s.low);
  } else {
    const auto pair_with = [&](double turns) {
      return static_cast<double>(pairs) * std::log(s.original_positions / turn / turns) / std::log(theta);
    };
    double fast = pair_with(s.beta_fast), slow = pair_with(s.beta_slow);
    if (s.whole_pairs) fast = std::floor(fast), slow = std::ceil(slow);
    fast = std::max(fast, 0.0), slow = std::min(slow, static_cast<double>(2 * pairs - 1));
    if (fast == slow) slow += 0.001;
    curve.by_pair = -1 / (slow - fast);
    curve.constant = slow / (slow - fast);
  }
  return curve;
}

namespace {

HeadSteps head_steps(const Tensor& t) { return {t.step(0), t.step(1), t.step(2)}; }

}  // namespace

HeadNormShape head_norm_shape(const op::HeadNormRotaryForward& op) {
  const Tensor& x = op.x;
  return {x.dim(0), x.dim(1), x.dim(2), op.queries, op.cos.dim(1), head_steps(x), head_steps(op.rotated), {}};
}

HeadNormShape head_norm_shape(const op::HeadNormRotaryBackward& op) {
  const Tensor& x = op.x;
  return {x.dim(0),         x.dim(1), x.dim(2), op.queries, op.cos.dim(1), head_steps(x), head_steps(op.drotated),
          head_steps(op.dx)};
}

static LatentKeysShape latent_keys_shape(const Tensor& nope, const Tensor& shared, const Tensor& k) {
  return {k.dim(0),
          k.dim(1),
          k.dim(2),
          nope.dim(3),
          shared.dim(2) / 2,
          head_steps(nope),
          {shared.step(0), shared.step(1), 0},
          head_steps(k)};
}

LatentKeysShape latent_keys_shape(const op::LatentKeysForward& op) {
  return latent_keys_shape(op.nope, op.shared, op.k);
}

LatentKeysShape latent_keys_shape(const op::LatentKeysBackward& op) {
  return latent_keys_shape(op.dnope, op.dshared, op.dk);
}

DropoutRule dropout_rule(float probability) {
  return {static_cast<std::uint32_t>(std::llround(static_cast<double>(probability) * 0x1p32)),
          static_cast<float>(1.0 / (1.0 - static_cast<double>(probability)))};
}

}  // namespace assay::compute
