// Optimizers, broken.
#include <algorithm>
#include <optional>
#include <utility>

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

void MutantBackend::execute(const op::Advance& op) {
  real().run(op);
  if (!executes()) return;
  side_updates_before_ = std::exchange(side_updates_, {});
  Values<std::int64_t> number = integers(op.step);
  if (number[0] > 1 && broken("advance.stands_still")) number[0] = 1, number.write();
}

// The copy alone of the stretch that comes next, by the gradients of the step before, which updated the same stretches:
// its weights and moments are updated when it is their turn, and then the copy is once more.
void MutantBackend::update_next_copy() {
  if (!is_side_ || !executes()) return;
  const std::size_t next = side_updates_.size();
  if (next >= side_updates_before_.size()) return;
  const op::AdamW& update = side_updates_before_[next];
  const auto gradient = gradients_before_.find(update.gradient.data);
  if (!update.compute_copy || gradient == gradients_before_.end() || !broken("update.copy_too_early")) return;
  const auto run = [&] { real().run(update); };
  const auto by_gradient = [&] {
    with_other<float>(
        update.gradient, [&](auto& g) { std::copy_n(&gradient->second[0], g.size(), g.begin()); }, run);
  };
  keeping(update.parameter, [&] { keeping(update.m, [&] { keeping(update.v, by_gradient); }); });
}

void MutantBackend::execute(const op::AdamW& op) {
  if (is_side_ && executes()) side_updates_.push_back(op);
  op::AdamW changed = op;
  AdamWOptions& o = changed.options;
  const auto call = [&] { real().run(changed); };
  if (broken("adamw.does_nothing")) return;
  if (broken("adamw.gradients_overwritten")) real().run(op::Fill{.x = op.gradient, .value = 1e-3F});
  if (o.weight_decay != 0 && broken("adamw.no_weight_decay")) o.weight_decay = 0;
  if (broken("adamw.beta1")) o.beta1 = 2 * o.beta1 - 1;
  if (broken("adamw.beta2")) o.beta2 = 10 * o.beta2 - 9;
  if (broken("adamw.large_eps")) o.eps = 1e-3F;
  if (broken("adamw.no_bias_correction"))
    return with_other<std::int64_t>(
        op.step, [](auto& number) { number[0] = late_step; }, call);
  if (broken("adamw.double_rate")) return with_other<float>(op.lr, double_all, call);
  if (broken("adamw.uphill")) return with_other<float>(op.lr, negate_all, call);
  if (broken("adamw.twice")) call();
  if (op.loss_scale.scale && executes() && floats(op.loss_scale.scale)[0] != 1 && broken("adamw.scale_left_in"))
    return with_other<float>(
        op.loss_scale.scale, [](auto& scale) { scale[0] = 1; }, call);
  if (op.loss_scale.nonfinite && executes() && floats(op.loss_scale.nonfinite)[0] > 0 &&
      broken("adamw.updates_all_the_same"))
    return with_other<float>(
        op.loss_scale.nonfinite, [](auto& count) { count[0] = 0; },
        [&] {  // no device has a step 0
          with_other<std::int64_t>(
              op.step, [](auto& number) { number[0] = std::max<std::int64_t>(number[0], 1); }, call);
        });
  if (executes()) {
    const Values<float> own = floats(op.gradient);
    const auto before = gradients_before_.find(op.gradient.data);
    std::optional<Values<float>> stale;
    if (before != gradients_before_.end() && before->second.size() == own.size()) stale.emplace(before->second);
    gradients_before_.insert_or_assign(op.gradient.data, own);
    if (stale && integers(op.step)[0] > 1 && broken("adamw.gradient_of_step_before"))
      return with_other<float>(
          op.gradient, [&](auto& g) { std::copy_n(&(*stale)[0], g.size(), g.begin()); }, call);
  }
  if (op.compute_copy && broken("adamw.copy_stale")) changed.compute_copy = {};
  if (broken("adamw.moments_forgotten"))
    real().run(op::Fill{.x = op.m, .value = 0}), real().run(op::Fill{.x = op.v, .value = 0});
  const std::int64_t n = op.parameter.elements() - left_out;
  if (n > 0 && broken("adamw.range_left_out"))
    for (Tensor* t : std::initializer_list<Tensor*>{&changed.parameter, &changed.gradient, &changed.m, &changed.v,
                                                    &changed.compute_copy})
      *t = head(*t, n);
  call();
  if (op.m.dtype == compute::DType::f32 && broken("adamw.bf16_moments"))
    edit(op.m, round_all<to_bf16>), edit(op.v, round_all<to_bf16>);
  update_next_copy();
}

void MutantBackend::execute(const op::Sgd& op) {
  op::Sgd changed = op;
  const auto call = [&] { real().run(changed); };
  if (broken("sgd.does_nothing")) return;
  if (broken("sgd.double_rate")) return with_other<float>(op.lr, double_all, call);
  if (broken("sgd.uphill")) return with_other<float>(op.lr, negate_all, call);
  const std::int64_t n = op.parameter.elements() - left_out;
  if (n > 0 && broken("sgd.range_left_out"))
    for (Tensor* t : std::initializer_list<Tensor*>{&changed.parameter, &changed.gradient, &changed.momentum,
                                                    &changed.compute_copy})
      *t = head(*t, n);
  call();
}

void MutantBackend::execute(const op::MuonMomentum& op) {
  op::MuonMomentum changed = op;
  if (broken("muon_momentum.forgotten"))
    edit(op.momentum, [](auto& v) {
      for (float& x : v) x = 0;
    });
  if (broken("muon_momentum.larger")) changed.options.momentum = 0.5F * (1 + changed.options.momentum);
  if (op.options.nesterov && broken("muon_momentum.without_nesterov")) changed.options.nesterov = false;
  real().run(changed);
}

void MutantBackend::execute(const op::NormalizeRows& op) {
  if (broken("normalize_rows.does_nothing")) return;
  real().run(op);
  if (broken("normalize_rows.half"))
    edit(op.x, [](auto& v) {
      for (float& x : v) x *= 0.5F;
    });
}

void MutantBackend::execute(const op::MuonUpdate& op) {
  op::MuonUpdate changed = op;
  const auto call = [&] { real().run(changed); };
  if (broken("muon_update.does_nothing")) return;
  if (op.options.weight_decay != 0 && broken("muon_update.no_weight_decay")) changed.options.weight_decay = 0;
  if (broken("muon_update.double_factor")) changed.options.factor *= 2;
  if (broken("muon_update.uphill")) return with_other<float>(op.lr, negate_all, call);
  if (op.compute_copy && broken("muon_update.copy_stale")) changed.compute_copy = {};
  if (op.parameter.dim(0) > 1 && broken("muon_update.last_matrix_left_out"))
    for (Tensor* t : std::initializer_list<Tensor*>{&changed.parameter, &changed.update, &changed.compute_copy})
      *t = head(*t, op.parameter.dim(0) - 1);
  call();
}

// ---- loss scale ----------------------------------------------------------------------------------------------------

void MutantBackend::execute(const op::CountNonfinite& op) {
  real().run(op);
  if (!executes()) return;
  Values<float> count = floats(op.out);
  if (count[0] > 0 && broken("count_nonfinite.none")) count[0] = 0, count.write();
}

void MutantBackend::execute(const op::UpdateLossScale& op) {
  op::UpdateLossScale changed = op;
  const bool overflowed = executes() && floats(op.nonfinite)[0] > 0;
  if (overflowed && broken("update_loss_scale.never_shrinks")) changed.options.backoff = 1;
  Values<std::int64_t> skipped = integers(op.skipped_steps);
  real().run(changed);
  if (overflowed && broken("update_loss_scale.nothing_skipped")) skipped.write();
}

void MutantBackend::execute(const op::SpoilPlaces& op) { real().run(op); }

void MutantBackend::execute(const op::MarkStep& op) {
  if (!broken("mark_step.does_nothing")) real().run(op);
}

}  // namespace assay::mutants
