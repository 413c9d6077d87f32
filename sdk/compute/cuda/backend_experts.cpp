// Mixtures of experts: routing, groups of rows, and gated units by rows. Products by groups are backend_grouped.cpp's.
#include "common/checks.hpp"
#include "cuda/expert_limits.hpp"
#include "cuda_backend.hpp"
#include "kernels/experts.hpp"
#include "scratch_sizes.hpp"

namespace assay::cuda {
namespace {

template <class Op>
void require_experts(const Op& op) {
  if (const std::string why = refusal_of_experts(op); !why.empty()) reject(op.name, why);
}

RouteShape route_shape(const Tensor& scores, const Tensor& experts) {
  return {scores.dim(0), static_cast<std::int32_t>(scores.dim(1)), static_cast<std::int32_t>(experts.dim(1))};
}

RowWeights row_weights(const Tensor& weights, const Tensor& sources) {
  return {data_of<float>(weights), weights.elements(), data_of<std::int32_t>(sources)};
}

}  // namespace

void CudaBackend::execute(const op::RouteForward& op) {
  require_experts(op);
  RouteForwardArgs args{};
  args.shape = route_shape(op.scores, op.experts);
  args.type = op.logits.dtype;
  args.logits = op.logits.data;
  args.bias = data_of<float>(op.bias);
  args.given = data_of<std::int32_t>(op.given);
  args.scores = data_of<float>(op.scores);
  args.lse = data_of<float>(op.lse);
  args.experts = data_of<std::int32_t>(op.experts);
  args.weights = data_of<float>(op.weights);
  args.rule = op.rule;
  if (!preparing()) launch_route_forward(stream(), args);
}

void CudaBackend::execute(const op::RouteBackward& op) {
  require_experts(op);
  RouteBackwardArgs args{};
  args.shape = route_shape(op.scores, op.experts);
  args.type = op.dlogits.dtype;
  args.scores = data_of<float>(op.scores);
  args.lse = data_of<float>(op.lse);
  args.experts = data_of<std::int32_t>(op.experts);
  args.counts = data_of<std::int32_t>(op.counts);
  args.dweights = data_of<float>(op.dweights);
  args.dlogits = op.dlogits.data;
  args.rule = op.rule;
  args.scale = data_of<float>(op.scale);
  if (args.shape.tokens == 0) return;
  const auto tokens = static_cast<double>(args.shape.tokens);
  args.balance =
      static_cast<float>(static_cast<double>(op.balance) * args.shape.experts / (tokens * tokens * args.shape.chosen));
  args.z = static_cast<float>(2.0 * static_cast<double>(op.z) / tokens);
  if (!preparing()) launch_route_backward(stream(), args);
}

void CudaBackend::execute(const op::RoutingLosses& op) {
  require_experts(op);
  const RouteShape shape{op.scores.dim(0), static_cast<std::int32_t>(op.scores.dim(1)), 0};
  void* const partials = scratch(routing_loss_partials(shape.tokens) * sizeof(double));
  if (preparing()) return;
  launch_routing_losses(stream(), shape, data_of<float>(op.scores), data_of<float>(op.lse),
                        data_of<std::int32_t>(op.counts), data_of<float>(op.losses), static_cast<double*>(partials));
}

void CudaBackend::execute(const op::GroupRows& op) {
  require_experts(op);
  GroupRowsArgs args{};
  args.choices = op.experts.elements();
  args.groups = static_cast<std::int32_t>(op.counts.dim(0));
  args.experts = data_of<std::int32_t>(op.experts);
  args.counts = data_of<std::int32_t>(op.counts);
  args.offsets = data_of<std::int32_t>(op.offsets);
  args.places = data_of<std::int32_t>(op.places);
  args.sources = data_of<std::int32_t>(op.sources);
  args.block_counts =
      static_cast<std::int32_t*>(scratch(group_block_counts(args.choices, args.groups) * sizeof(std::int32_t)));
  if (!preparing()) launch_group_rows(stream(), args);
}

void CudaBackend::execute(const op::GatherRows& op) {
  if (preparing()) return;
  launch_gather_rows(stream(), op.x.dtype, op.x.data, data_of<std::int32_t>(op.sources), op.rows.data, op.x.dim(0),
                     op.rows.dim(0), op.x.dim(1), op.copies);
}

void CudaBackend::execute(const op::CombineRows& op) {
  if (preparing()) return;
  launch_combine_rows(stream(), op.rows.dtype, op.rows.data, data_of<std::int32_t>(op.places), op.residual.data,
                      op.y.data, op.y.dim(0), op.rows.dim(0), op.places.dim(1), op.y.dim(1));
}

void CudaBackend::execute(const op::WeightedGatedForward& op) {
  const Rows gate = as_rows(op.name, op.gate);
  const SwigluShape shape{.rows = gate.count,
                          .width = gate.width,
                          .gate_step = gate.stride,
                          .up_step = as_rows(op.name, op.up).stride,
                          .dh_step = 0,
                          .dgate_step = 0,
                          .dup_step = 0,
                          .h_step = as_rows(op.name, op.h).stride};
  if (preparing()) return;
  launch_weighted_gated_forward(stream(), op.gate.dtype, op.gate.data, op.up.data, op.h.data,
                                row_weights(op.weights, op.sources), op.unit, shape);
}

void CudaBackend::execute(const op::WeightedGatedBackward& op) {
  const Rows gate = as_rows(op.name, op.gate);
  const SwigluShape shape{.rows = gate.count,
                          .width = gate.width,
                          .gate_step = gate.stride,
                          .up_step = as_rows(op.name, op.up).stride,
                          .dh_step = as_rows(op.name, op.dh).stride,
                          .dgate_step = as_rows(op.name, op.dgate).stride,
                          .dup_step = as_rows(op.name, op.dup).stride,
                          .h_step = op.h ? as_rows(op.name, op.h).stride : 0};
  if (preparing()) return;
  launch_weighted_gated_backward(stream(), op.gate.dtype, op.gate.data, op.up.data, op.dh.data, op.dgate.data,
                                 op.dup.data, op.h.data, data_of<float>(op.dweights),
                                 row_weights(op.weights, op.sources), op.unit, shape);
}

}  // namespace assay::cuda
