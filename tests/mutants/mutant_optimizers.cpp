// Optimizers, broken.
#include <algorithm>
#include <optional>

#include "mutant_backend.hpp"

namespace assay::mutants {
namespace {

constexpr std::int64_t left_out = 64;          // elements
constexpr std::int64_t late_step = 1'000'000;  // where no bias of the moments is left to correct

void double_all(Values<float>& values) {
  for (float& value : values) value *= 2;
}
void negate_all(Values<float>& values) {
  for (float& value : values) value = -value;
}

}  // namespace

void MutantBackend::advance(const Tensor& step, const LossScale& loss_scale) {
  real().advance(step, loss_scale);
  if (!executes()) return;
  Values<std::int64_t> number = integers(step);
  if (number[0] > 1 && broken("advance.stands_still")) number[0] = 1, number.write();
}

void MutantBackend::adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& m, const Tensor& v,
                          const Tensor& step, const Tensor& lr, const AdamWOptions& options, const Tensor& compute_copy,
                          const LossScale& loss_scale) {
  AdamWOptions o = options;
  Tensor copied = compute_copy;
  const auto call = [&] { real().adamw(parameter, gradient, m, v, step, lr, o, copied, loss_scale); };
  if (broken("adamw.does_nothing")) return;
  if (o.weight_decay != 0 && broken("adamw.no_weight_decay")) o.weight_decay = 0;
  if (broken("adamw.beta1")) o.beta1 = 2 * o.beta1 - 1;
  if (broken("adamw.beta2")) o.beta2 = 10 * o.beta2 - 9;
  if (broken("adamw.large_eps")) o.eps = 1e-3F;
  if (broken("adamw.no_bias_correction"))
    return with_other<std::int64_t>(
        step, [](auto& number) { number[0] = late_step; }, call);
  if (broken("adamw.double_rate")) return with_other<float>(lr, double_all, call);
  if (broken("adamw.uphill")) return with_other<float>(lr, negate_all, call);
  if (broken("adamw.twice")) call();
  if (loss_scale.scale && executes() && floats(loss_scale.scale)[0] != 1 && broken("adamw.scale_left_in"))
    return with_other<float>(
        loss_scale.scale, [](auto& scale) { scale[0] = 1; }, call);
  if (loss_scale.nonfinite && executes() && floats(loss_scale.nonfinite)[0] > 0 && broken("adamw.updates_all_the_same"))
    return with_other<float>(
        loss_scale.nonfinite, [](auto& count) { count[0] = 0; },
        [&] {  // no device has a step 0
          with_other<std::int64_t>(
              step, [](auto& number) { number[0] = std::max<std::int64_t>(number[0], 1); }, call);
        });
  if (executes()) {
    const Values<float> own = floats(gradient);
    const auto before = gradients_before_.find(gradient.data);
    std::optional<Values<float>> stale;
    if (before != gradients_before_.end() && before->second.size() == own.size()) stale.emplace(before->second);
    gradients_before_.insert_or_assign(gradient.data, own);
    if (stale && integers(step)[0] > 1 && broken("adamw.gradient_of_step_before"))
      return with_other<float>(
          gradient, [&](auto& g) { std::copy_n(&(*stale)[0], g.size(), g.begin()); }, call);
  }
  if (compute_copy && broken("adamw.copy_stale")) copied = {};
  if (broken("adamw.moments_forgotten")) real().fill(m, 0), real().fill(v, 0);
  const std::int64_t n = parameter.elements() - left_out;
  if (n > 0 && broken("adamw.range_left_out"))
    return real().adamw(head(parameter, n), head(gradient, n), head(m, n), head(v, n), step, lr, o, head(copied, n),
                        loss_scale);
  call();
  if (m.dtype == compute::DType::f32 && broken("adamw.bf16_moments"))
    edit(m, round_all<to_bf16>), edit(v, round_all<to_bf16>);
}

void MutantBackend::sgd(const Tensor& parameter, const Tensor& gradient, const Tensor& momentum, const Tensor& step,
                        const Tensor& lr, const SgdOptions& options, const Tensor& compute_copy,
                        const LossScale& loss_scale) {
  const auto call = [&] { real().sgd(parameter, gradient, momentum, step, lr, options, compute_copy, loss_scale); };
  if (broken("sgd.does_nothing")) return;
  if (broken("sgd.double_rate")) return with_other<float>(lr, double_all, call);
  if (broken("sgd.uphill")) return with_other<float>(lr, negate_all, call);
  const std::int64_t n = parameter.elements() - left_out;
  if (n > 0 && broken("sgd.range_left_out"))
    return real().sgd(head(parameter, n), head(gradient, n), head(momentum, n), step, lr, options,
                      head(compute_copy, n), loss_scale);
  call();
}

// ---- loss scale ----------------------------------------------------------------------------------------------------

void MutantBackend::count_nonfinite(const Tensor& x, const Tensor& out) {
  real().count_nonfinite(x, out);
  if (!executes()) return;
  Values<float> count = floats(out);
  if (count[0] > 0 && broken("count_nonfinite.none")) count[0] = 0, count.write();
}

void MutantBackend::update_loss_scale(const LossScale& loss_scale, const Tensor& good_steps,
                                      const Tensor& skipped_steps, const LossScaleOptions& options) {
  LossScaleOptions o = options;
  const bool overflowed = executes() && floats(loss_scale.nonfinite)[0] > 0;
  if (overflowed && broken("update_loss_scale.never_shrinks")) o.backoff = 1;
  Values<std::int64_t> skipped = integers(skipped_steps);
  real().update_loss_scale(loss_scale, good_steps, skipped_steps, o);
  if (overflowed && broken("update_loss_scale.nothing_skipped")) skipped.write();
}

}  // namespace assay::mutants
