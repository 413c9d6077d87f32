// The ends of a layer's branches, where they join the residual stream, and the feed-forward's way back.
#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

void DecoderModel::gated_unit(Backend& b, const Forward& f) const {
  const GateUp gu = gate_up(f);
  if (config_.fused)
    return b.run(op::SwigluForward{.gate = gu.gate,
                                   .up = gu.up,
                                   .h = unless_eight_bits(f.hidden),
                                   .eight_bits = as_read_by(f.w2_8),
                                   .activation = config_.gate_activation});
  b.run(op::ActivationForward{.kind = config_.gate_activation, .x = gu.gate, .y = plan_[f.silu]});
  b.run(op::Multiply{.a = plan_[f.silu], .b = gu.up, .out = plan_[f.hidden]});
}

void DecoderModel::end_branch(Backend& b, const BranchEnd& end, const EightBits& by) const {
  if (adds_in_products()) {
    b.run(op::Matmul{.a = end.x,
                     .b = set_.compute(end.weight),
                     .c = plan_[end.sum],
                     .transpose_b = true,
                     .residual = plan_[end.residual]});
    return b.run(op::RmsNormForward{.x = plan_[end.sum],
                                    .weight = end.norm_weight,
                                    .y = end.normed,
                                    .rstd = end.rstd,
                                    .eps = norm_eps(),
                                    .weight_offset = norm_offset()});
  }
  project(b, end.x, end.weight, 1, by, plan_[end.branch], end.bias);
  b.run(op::AddRmsNormForward{.x = end_of_branch(b, end.branch, end.post, end.post_weight),
                              .residual = plan_[end.residual],
                              .sum = plan_[end.sum],
                              .weight = end.norm_weight,
                              .y = end.normed,
                              .rstd = end.rstd,
                              .eps = norm_eps(),
                              .weight_offset = norm_offset(),
                              .eight_bits = end.eight_bits});
}

Tensor DecoderModel::end_of_branch(Backend& b, Id branch, const PostNorm& post, train::ParameterSet::Id weight) const {
  if (!config_.post_norms) return plan_[branch];
  b.run(op::RmsNormForward{.x = plan_[branch],
                           .weight = set_.value(weight),
                           .y = plan_[post.normed],
                           .rstd = plan_[post.rstd],
                           .eps = norm_eps(),
                           .weight_offset = norm_offset()});
  return plan_[post.normed];
}

DecoderModel::Id DecoderModel::branch_gradient(Backend& b, Id gradient, Id branch, const PostNorm& post,
                                               train::ParameterSet::Id weight, Id dbranch) const {
  if (!config_.post_norms) return gradient;
  norm_backward(b, weight, plan_[gradient], plan_[branch], plan_[post.rstd], {}, plan_[dbranch], {});
  return dbranch;
}

// The norm's output is made again rather than kept: that much memory per layer against one more write.
void DecoderModel::norm_backward(Backend& b, train::ParameterSet::Id weight, const Tensor& dy, const Tensor& x,
                                 const Tensor& rstd, const Tensor& residual, const Tensor& dx, const Tensor& y,
                                 const op::EightBitRows& eight_bits) const {
  b.run(op::RmsNormBackward{.dy = dy,
                            .x = x,
                            .weight = set_.value(weight),
                            .rstd = rstd,
                            .residual = residual,
                            .dx = dx,
                            .dweight = set_.gradient(weight),
                            .weight_offset = norm_offset(),
                            .y = y,
                            .eight_bits = eight_bits});
}

void DecoderModel::feed_forward_backward(Backend& b, const DecoderLayerParameters& p, const Forward& f,
                                         const Backward& g, train::GradientListener* listener) const {
  const Tensor& dx = plan_[dx_];
  const GateUp gu = gate_up(f);
  const Id by_branch = branch_gradient(b, dx_, f.branch2, f.post2, p.ffw_norm, g.dbranch2);
  project_back(b, plan_[by_branch], p.w2, 1, g.w2_8, plan_[g.dhidden]);
  const Tensor& dmiddle = plan_[dx_middle_];
  if (config_.fused) {
    b.run(op::SwigluBackward{.gate = gu.gate,
                             .up = gu.up,
                             .dh = plan_[g.dhidden],
                             .dgate = unless_eight_bit_weight_gradients(gu.gate),
                             .dup = unless_eight_bit_weight_gradients(gu.up),
                             .h = made_again(g.hidden),
                             .eight_bits = as_read_by(g.gate_up_8),
                             .activation = config_.gate_activation});
    weight_gradient(b, by_branch, keeps_outputs() ? f.hidden : g.hidden, p.w2, 1, g.w2_8, f.w2_8);
    tell(listener, p.w2 + 1);
    project_back(b, gu.packed, p.w1, 2, g.gate_up_8, plan_[g.dnormed2]);
    norm_backward(b, p.ln2, plan_[g.dnormed2], plan_[f.middle], plan_[f.rstd2], dx, dmiddle, made_again(g.normed2),
                  as_read_by(g.output_8));
    weight_gradient(b, f.gate_up, keeps_outputs() ? f.normed2 : g.normed2, p.w1, 2, g.gate_up_8, f.gate_up_8);
    return tell(listener, p.ln2 + 1);
  }
  b.run(op::ActivationForward{.kind = config_.gate_activation, .x = gu.gate, .y = plan_[g.silu]});
  b.run(op::Multiply{.a = plan_[g.silu], .b = gu.up, .out = plan_[g.hidden]});
  weight_gradient(b, plan_[by_branch], plan_[g.hidden], p.w2);
  tell(listener, p.w2 + 1);
  b.run(op::Multiply{.a = plan_[g.dhidden], .b = gu.up, .out = plan_[g.dsilu]});
  b.run(op::Multiply{.a = plan_[g.dhidden], .b = plan_[g.silu], .out = gu.up});  // now the gradient of up
  b.run(op::ActivationBackward{.kind = config_.gate_activation,
                               .x = gu.gate,
                               .dy = plan_[g.dsilu],
                               .dx = plan_[g.dsilu]});  // now the gradient of gate
  b.run(op::RmsNormForward{.x = plan_[f.middle],
                           .weight = set_.value(p.ln2),
                           .y = plan_[g.normed2],
                           .rstd = plan_[f.rstd2],
                           .eps = norm_eps(),
                           .weight_offset = norm_offset()});
  weight_gradient(b, plan_[g.dsilu], plan_[g.normed2], p.w1);
  weight_gradient(b, gu.up, plan_[g.normed2], p.w3);
  tell(listener, p.w3 + 1);
  b.run(op::Matmul{.a = plan_[g.dsilu], .b = set_.compute(p.w1), .c = plan_[g.dnormed2]});
  b.run(op::Matmul{.a = gu.up, .b = set_.compute(p.w3), .c = plan_[g.dnormed2], .accumulate = true});
  norm_backward(b, p.ln2, plan_[g.dnormed2], plan_[f.middle], plan_[f.rstd2], dx, dmiddle, {});
  tell(listener, p.ln2 + 1);
}

}  // namespace assay::models
