// Mixtures of experts: routing, rows, gated units. Their products are in backend_grouped.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "cpu_backend.hpp"
#include "kernels/experts.hpp"

namespace assay::cpu {
namespace {

// A bad index must not read or write another tensor's memory.
void require_indices(const char* operation, const char* name, const Tensor& indices, std::int64_t low,
                     std::int64_t high) {
  const auto* const first = data_of<std::int32_t>(indices);
  const auto* const bad =
      std::find_if(first, first + indices.elements(), [=](std::int32_t i) { return i < low || i >= high; });
  if (bad == first + indices.elements()) return;
  invalid(operation,
          fmt::format("{} has {} at position {}; expected {} <= number < {}", name, *bad, bad - first, low, high));
}

template <class Op>
GatedArgs gated_args(const Op& op) {
  const auto step = [&](const Tensor& t) { return as_rows(op.name, t).stride; };
  GatedArgs args{};
  args.rows = op.gate.dim(0), args.width = op.gate.dim(1);
  args.gate_step = step(op.gate), args.up_step = step(op.up);
  args.alpha = op.unit.alpha, args.limit = op.unit.limit, args.offset = op.unit.offset;
  args.gate = op.gate.data, args.up = op.up.data;
  args.weights = data_of<float>(op.weights);
  args.sources = data_of<std::int32_t>(op.sources);
  args.h = op.h.data;
  return args;
}

}  // namespace

void CpuBackend::execute(const op::RouteForward& op) {
  if (preparing()) return;
  const std::int64_t experts = op.logits.dim(1);
  if (op.given) require_indices(op.name, "given", op.given, 0, experts);
  RouteArgs args{};
  args.sigmoid = op.rule.score == ExpertScore::sigmoid;
  args.normalized = op.rule.normalized;
  args.factor = op.rule.factor;
  args.tokens = op.logits.dim(0), args.count = experts, args.k = op.experts.dim(1);
  args.logits = op.logits.data;
  args.bias = data_of<float>(op.bias);
  args.given = data_of<std::int32_t>(op.given);
  args.scores = data_of<float>(op.scores), args.lse = data_of<float>(op.lse);
  args.experts = data_of<std::int32_t>(op.experts), args.weights = data_of<float>(op.weights);
  expert_kernels(isa_).route_forward[index_of(op.logits.dtype)](args);
}

void CpuBackend::execute(const op::RouteBackward& op) {
  if (preparing() || op.dlogits.elements() == 0) return;
  const std::int64_t tokens = op.scores.dim(0), experts = op.scores.dim(1), k = op.experts.dim(1);
  require_indices(op.name, "experts", op.experts, 0, experts);
  const double scale = op.scale ? static_cast<double>(*data_of<float>(op.scale)) : 1,
               count = static_cast<double>(tokens);
  RouteArgs args{};
  args.sigmoid = op.rule.score == ExpertScore::sigmoid;
  args.normalized = op.rule.normalized;
  args.factor = op.rule.factor;
  args.tokens = tokens, args.count = experts, args.k = k;
  args.scores = data_of<float>(op.scores), args.lse = data_of<float>(op.lse);
  args.experts = data_of<std::int32_t>(op.experts), args.weights = data_of<float>(op.dweights);
  args.dlogits = op.dlogits.data;
  args.counts = data_of<std::int32_t>(op.counts);
  args.balance = static_cast<float>(scale * static_cast<double>(op.balance) * static_cast<double>(experts) /
                                    (count * count * static_cast<double>(k)));
  args.z = static_cast<float>(scale * static_cast<double>(op.z) * 2 / count);
  expert_kernels(isa_).route_backward[index_of(op.dlogits.dtype)](args);
}

void CpuBackend::execute(const op::RoutingLosses& op) {
  const std::int64_t tokens = op.scores.dim(0), experts = op.scores.dim(1);
  void* const partials = scratch(static_cast<std::size_t>(routing_blocks(tokens) * (experts + 1)) * sizeof(double));
  if (preparing()) return;
  expert_kernels(isa_).routing_losses({.tokens = tokens,
                                       .count = experts,
                                       .scores = data_of<float>(op.scores),
                                       .lse = data_of<float>(op.lse),
                                       .counts = data_of<std::int32_t>(op.counts),
                                       .losses = data_of<float>(op.losses),
                                       .partials = static_cast<double*>(partials)});
}

// A few numbers for each token: one thread has them sorted before others were awake.
void CpuBackend::execute(const op::GroupRows& op) {
  const std::int32_t groups = static_cast<std::int32_t>(op.counts.dim(0));
  auto* const next = static_cast<std::int32_t*>(scratch(static_cast<std::size_t>(groups) * sizeof(std::int32_t)));
  if (preparing()) return;
  const std::int64_t choices = op.experts.elements();
  const auto* const experts = data_of<std::int32_t>(op.experts);
  auto *const counts = data_of<std::int32_t>(op.counts), *const offsets = data_of<std::int32_t>(op.offsets);
  auto *const places = data_of<std::int32_t>(op.places), *const sources = data_of<std::int32_t>(op.sources);
  const auto has_group = [=](std::int32_t e) { return e >= 0 && e < groups; };
  std::fill(counts, counts + groups, 0);
  for (std::int64_t i = 0; i < choices; ++i)
    if (has_group(experts[i])) ++counts[experts[i]];
  offsets[0] = 0;
  for (std::int32_t e = 0; e < groups; ++e) {
    next[e] = offsets[e];
    offsets[e + 1] = offsets[e] + counts[e];
  }
  for (std::int64_t i = 0; i < choices; ++i) {
    places[i] = has_group(experts[i]) ? next[experts[i]]++ : -1;
    if (places[i] >= 0) sources[places[i]] = static_cast<std::int32_t>(i);
  }
  std::fill(sources + offsets[groups], sources + choices, -1);
}

void CpuBackend::execute(const op::GatherRows& op) {
  if (preparing() || op.rows.elements() == 0) return;
  require_indices(op.name, "sources", op.sources, -1, op.x.dim(0) * op.copies);
  const auto bytes = op.x.dim(1) * static_cast<std::int64_t>(size_of(op.x.dtype));
  expert_kernels(isa_).gather_rows(op.rows.data, op.x.data, data_of<std::int32_t>(op.sources), op.rows.dim(0), bytes,
                                   op.copies);
}

void CpuBackend::execute(const op::CombineRows& op) {
  if (preparing() || op.y.elements() == 0) return;
  require_indices(op.name, "places", op.places, -1, op.rows.dim(0));
  expert_kernels(isa_).combine_rows[index_of(op.y.dtype)](op.y.data, op.rows.data, data_of<std::int32_t>(op.places),
                                                          op.residual.data, op.y.dim(0), op.places.dim(1), op.y.dim(1));
}

void CpuBackend::execute(const op::WeightedGatedForward& op) {
  if (preparing() || op.h.elements() == 0) return;
  require_indices(op.name, "sources", op.sources, -1, op.weights.elements());
  expert_kernels(isa_).gated_forward[index_of(op.gate.dtype)](gated_args(op));
}

void CpuBackend::execute(const op::WeightedGatedBackward& op) {
  if (preparing()) return;
  execute(op::Fill{.x = op.dweights, .value = 0});
  if (op.gate.elements() == 0) return;
  require_indices(op.name, "sources", op.sources, -1, op.weights.elements());
  GatedArgs args = gated_args(op);
  args.dgate_step = as_rows(op.name, op.dgate).stride, args.dup_step = as_rows(op.name, op.dup).stride;
  args.dh = op.dh.data;
  args.dgate = op.dgate.data, args.dup = op.dup.data;
  args.dweights = data_of<float>(op.dweights);
  expert_kernels(isa_).gated_backward[index_of(op.gate.dtype)](args);
}

}  // namespace assay::cpu
