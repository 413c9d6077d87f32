// Mixtures of experts, broken.
#include <algorithm>
#include <numeric>

#include "mutant_backend.hpp"

namespace assay::mutants {
namespace {

using Indices = Values<std::int32_t>;

void scale_all(Values<float>& values, float factor) {
  for (float& value : values) value *= factor;
}

bool any_beyond(Values<float> values, float limit) {
  return std::any_of(values.begin(), values.end(), [=](float x) { return x > limit; });
}

// The last group with rows, and the first; of none -1.
std::int64_t last_group(const Indices& offsets) {
  std::int64_t e = offsets.size() - 2;
  while (e >= 0 && offsets[e] == offsets[e + 1]) --e;
  return e;
}
std::int64_t first_group(const Indices& offsets) {
  for (std::int64_t e = 0; e + 1 < offsets.size(); ++e)
    if (offsets[e] != offsets[e + 1]) return e;
  return -1;
}
std::int64_t empty_group(const Indices& offsets) {
  for (std::int64_t e = 0; e + 1 < offsets.size(); ++e)
    if (offsets[e] == offsets[e + 1]) return e;
  return -1;
}
std::int64_t last_with_source(const Indices& sources) {
  std::int64_t r = sources.size() - 1;
  while (r >= 0 && sources[r] < 0) --r;
  return r;
}

Tensor row(const Tensor& t, std::int64_t r) { return t.slice(0, r, 1); }

}  // namespace

void MutantBackend::execute(const op::RouteForward& op) {
  const auto call = [&] { real().run(op); };
  if (!executes() || op.experts.elements() == 0) return call();
  const std::int64_t k = op.experts.dim(1), count = op.logits.dim(1);
  call();
  if (!op.given && k < count && broken("route_forward.another_expert")) {
    Indices experts(real(), op.experts);
    std::int32_t other = 0;
    while (std::find(experts.begin(), experts.begin() + k, other) != experts.begin() + k) ++other;
    experts[k - 1] = other;
    experts.write();
  }
  if (k > 1 && broken("route_forward.weight_of_another_expert"))
    edit(op.weights, [](auto& v) { std::swap(v[0], v[1]); });
  if (broken("route_forward.weights_1_percent")) edit(op.weights, [](auto& v) { scale_all(v, too_large); });
}

void MutantBackend::execute(const op::RouteBackward& op) {
  op::RouteBackward changed = op;
  if (op.balance != 0 && broken("route_backward.balance_missing")) changed.balance = 0;
  if (op.z != 0 && broken("route_backward.z_missing")) changed.z = 0;
  real().run(changed);
  if (broken("route_backward.no_gradient_to_the_router")) edit(op.dlogits, [](auto& v) { scale_all(v, 0); });
  if (broken("route_backward.last_row_0")) edit(last_row(op.dlogits), [](auto& v) { scale_all(v, 0); });
}

void MutantBackend::execute(const op::RoutingLosses& op) {
  real().run(op);
  if (broken("routing_losses.balance_1_percent")) edit(op.losses, [](auto& v) { v[0] *= too_large; });
  if (broken("routing_losses.z_missing")) edit(op.losses, [](auto& v) { v[1] = 0; });
}

void MutantBackend::execute(const op::GroupRows& op) {
  real().run(op);
  if (!executes() || op.experts.elements() == 0) return;
  Indices offsets(real(), op.offsets), places(real(), op.places), sources(real(), op.sources);
  const std::int64_t groups = offsets.size() - 1;
  // A boundary with rows behind it, which the group before it then has as well.
  std::int64_t boundary = 1;
  while (boundary < groups && offsets[boundary] == offsets[groups]) ++boundary;
  if (boundary < groups && broken("group_rows.wrong_offset")) {
    ++offsets[boundary];
    for (std::int64_t e = boundary + 1; e < groups; ++e) offsets[e] = std::max(offsets[e], offsets[boundary]);
    offsets.write();
  }
  const std::int64_t last = places.size() - 1;
  if (places[last] >= 0 && broken("group_rows.token_dropped")) {
    sources[places[last]] = -1;
    places[last] = -1;
    sources.write(), places.write();
  }
  if (offsets[groups] > 1 && broken("group_rows.rows_of_other_tokens")) {
    std::swap(sources[0], sources[1]);
    sources.write();
  }
  Indices counts(real(), op.counts);
  const auto before = counts_before_.find(op.counts.data);
  if (before != counts_before_.end() && !std::equal(counts.begin(), counts.end(), before->second.begin()) &&
      broken("group_rows.stale_counts")) {
    Indices old = before->second;
    old.write();
  }
  counts_before_.insert_or_assign(op.counts.data, counts);
}

void MutantBackend::execute(const op::GatherRows& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  const std::int64_t last = last_with_source(Indices(real(), op.sources));
  if (last < 0) return call();
  if (broken("gather_rows.last_row_unwritten")) return keeping(row(op.rows, last), call);
  if (op.x.dim(0) > 1 && broken("gather_rows.row_of_another_token"))
    return with_other<std::int32_t>(
        op.sources,
        [&](auto& v) {
          const auto copies = static_cast<std::int32_t>(op.copies);
          v[last] = v[last] < copies ? v[last] + copies : v[last] - copies;
        },
        call);
  call();
}

void MutantBackend::execute(const op::CombineRows& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  if (op.residual && broken("combine_rows.residual_ignored"))
    return with_other<float>(
        op.residual, [](auto& v) { scale_all(v, 0); }, call);
  const Indices places(real(), op.places);
  const std::int64_t last = places.size() - 1;
  if (last >= 0 && places[last] >= 0 && broken("combine_rows.last_row_missing"))
    return with_other<std::int32_t>(
        op.places, [&](auto& v) { v[last] = -1; }, call);
  call();
}

void MutantBackend::execute(const op::GroupedMatmul& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  const Indices offsets(real(), op.offsets);
  const std::int64_t last = last_group(offsets), first = first_group(offsets), groups = offsets.size() - 1;
  if (last < 0) return call();
  if (broken("grouped_matmul.last_row_unwritten")) return keeping(row(op.c, offsets[last + 1] - 1), call);
  if (first + 1 < groups && broken("grouped_matmul.matrix_of_the_neighbour"))
    return with_other<std::int32_t>(
        op.offsets, [&](auto& v) { v[first + 1] = v[first]; }, call);
  if (op.bias && broken("grouped_matmul.bias_ignored"))
    return with_other<float>(
        op.bias, [](auto& v) { scale_all(v, 0); }, call);
  call();
  const Tensor rows = op.c.slice(0, 0, offsets[groups]);
  if (op.transpose_b && broken("grouped_matmul.forward_1_percent"))
    edit(rows, [](auto& v) { scale_all(v, too_large); });
  if (!op.transpose_b && broken("grouped_matmul.gradient_1_percent"))
    edit(rows, [](auto& v) { scale_all(v, too_large); });
}

void MutantBackend::execute(const op::GroupedWeightGradient& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  const Indices offsets(real(), op.offsets);
  const std::int64_t last = last_group(offsets), empty = empty_group(offsets);
  if (op.dw && !op.accumulate && empty >= 0 && broken("grouped_weight_gradient.empty_group_unwritten"))
    return keeping(row(op.dw, empty), call);
  if (last < 0) return call();
  if (op.update.any() && broken("adamw_in_product.left_out")) return keeping(row(op.update.parameter, last), call);
  if (op.update.any() && broken("adamw_in_product.second_moment_kept")) return keeping(row(op.update.v, last), call);
  if (!op.dw && Values<std::int64_t>(real(), op.update.gradient_place)[0] == 0 &&
      broken("adamw_in_product.left_out_unless_shown"))
    return keeping(row(op.update.parameter, last), call);
  if (!op.dw) return call();  // the gradient is not to be seen
  if (op.accumulate && broken("grouped_weight_gradient.accumulate_ignored")) {
    edit(op.dw, [](auto& v) { scale_all(v, 0); });
    return call();
  }
  if (broken("grouped_weight_gradient.last_row_missing"))
    return with_other<float>(
        row(op.x, offsets[last + 1] - 1), [](auto& v) { scale_all(v, 0); }, call);
  const Tensor of_last = row(op.dw, last);
  if (broken("grouped_weight_gradient.1_percent")) {
    const Values<float> before = floats(of_last);
    call();
    return edit(of_last, [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] += (too_large - 1) * (v[i] - (op.accumulate ? before[i] : 0));
    });
  }
  call();
  if (op.dbias && broken("grouped_weight_gradient.bias_last_row_missing")) {
    const Values<float> gradient = floats(row(op.dy, offsets[last + 1] - 1));
    edit(row(op.dbias, last), [&](auto& v) {
      for (std::int64_t i = 0; i < v.size(); ++i) v[i] -= gradient[i];
    });
  }
}

void MutantBackend::execute(const op::WeightedGatedForward& op) {
  op::WeightedGatedForward changed = op;
  const auto call = [&] { real().run(changed); };
  if (!executes()) return call();
  if (op.unit.limit > 0 && any_beyond(floats(op.gate), op.unit.limit) && broken("weighted_gated_forward.limit_ignored"))
    changed.unit.limit = 0;
  if (broken("weighted_gated_forward.weights_ignored"))
    return with_other<float>(
        op.weights, [](auto& v) { std::fill(v.begin(), v.end(), 1.0F); }, call);
  const std::int64_t last = last_with_source(Indices(real(), op.sources));
  if (last >= 0 && broken("weighted_gated_forward.last_row_unwritten")) return keeping(row(op.h, last), call);
  call();
}

void MutantBackend::execute(const op::WeightedGatedBackward& op) {
  const auto call = [&] { real().run(op); };
  if (!executes()) return call();
  if (op.h && broken("weighted_gated_backward.product_unwritten")) return keeping(op.h, call);
  call();
  if (broken("weighted_gated_backward.no_gradient_to_the_router")) edit(op.dweights, [](auto& v) { scale_all(v, 0); });
  if (op.dweights.elements() > 1 && broken("weighted_gated_backward.gradient_of_another_weight"))
    edit(op.dweights, [](auto& v) { std::swap(v[v.size() - 1], v[v.size() - 2]); });
  if (broken("weighted_gated_backward.swapped")) {
    Values<float> by_gate = floats(op.dgate), by_up = floats(op.dup);
    std::swap_ranges(by_gate.begin(), by_gate.end(), by_up.begin());
    by_gate.write(), by_up.write();
  }
}

}  // namespace assay::mutants
