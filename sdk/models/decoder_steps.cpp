// The decoder's forward and backward passes.
#include <cmath>

#include <assay/train/gradient_accumulation.hpp>

#include "assay/models/decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Activation;
using compute::Backend;
using compute::Tensor;

namespace {

// y = x w^T (+ bias)
void project(Backend& b, const Tensor& x, const Tensor& w, const Tensor& y, const Tensor& bias = {}) {
  b.run(op::Matmul{.a = x, .b = w, .c = y, .transpose_b = true, .bias = bias});
}

}  // namespace

void DecoderModel::initialize(Backend& b) const {
  if (config_.shares_context())
    rotation_of_own_chunks(b);
  else
    b.run(op::RotaryTable{.cos = plan_[cos_], .sin = plan_[sin_], .theta = config_.rope_theta});
  initialize_experts(b);
}

Tensor DecoderModel::split_heads(const Tensor& x) const {
  return x.view({config_.batch_size, config_.own_context(), config_.own_heads(), config_.head_width()});
}

namespace {

// Where the heads of queries, keys and values begin in a packed buffer, and how many they are.
struct Heads {
  std::int64_t first, count;
};
Heads heads_at(const DecoderConfig& c, int which) {
  const std::int64_t h = c.own_heads(), k = c.own_key_heads();
  return which == 0 ? Heads{0, h} : Heads{h + (which - 1) * k, k};
}
Tensor by_heads(const DecoderConfig& c, const Tensor& packed) {
  return packed.view({c.batch_size, c.own_context(), c.own_heads() + 2 * c.own_key_heads(), c.head_width()});
}

}  // namespace

Tensor DecoderModel::heads_of(const Tensor& packed, int which) const {
  const Heads at = heads_at(config_, which);
  return by_heads(config_, packed).slice(2, at.first, at.count);
}

Tensor DecoderModel::columns_of(const Tensor& packed, int which) const {
  const Heads at = heads_at(config_, which);
  return packed.slice(1, at.first * config_.head_width(), at.count * config_.head_width());
}

Tensor DecoderModel::bias_of(const DecoderLayerParameters& p, int which, std::size_t count) const {
  return config_.qkv_bias ? set_.compute(p.q_bias + static_cast<std::size_t>(which), count) : Tensor();
}

// Queries and keys lie side by side: fused, they are one tensor of all their heads.
void DecoderModel::rotate(Backend& b, const Tensor& packed, bool inverse) const {
  if (config_.fused)
    return b.run(op::Rotary{.x = by_heads(config_, packed).slice(2, 0, config_.own_heads() + config_.own_key_heads()),
                            .cos = plan_[cos_],
                            .sin = plan_[sin_],
                            .inverse = inverse});
  for (int i = 0; i < 2; ++i)
    b.run(op::Rotary{.x = heads_of(packed, i), .cos = plan_[cos_], .sin = plan_[sin_], .inverse = inverse});
}

DecoderModel::GateUp DecoderModel::gate_up(const Forward& f) const {
  const Tensor& packed = plan_[f.gate_up];
  const std::int64_t ff = config_.own_d_ff();
  if (config_.fused) return {packed, packed.slice(1, 0, ff), packed.slice(1, ff, ff)};
  const Tensor halves = packed.view({2 * config_.rows(), ff});
  return {packed, halves.slice(0, 0, config_.rows()), halves.slice(0, config_.rows(), config_.rows())};
}

void DecoderModel::weight_gradient(Backend& b, const Tensor& dy, const Tensor& x, train::ParameterSet::Id first,
                                   std::size_t count) const {
  if (lanes()) b.begin_side();
  b.run(op::Matmul{.a = dy, .b = x, .c = set_.gradient(first, count), .transpose_a = true});
  if (lanes()) b.end_side();
}

void DecoderModel::forward(Backend& b, const Tensor& ids, const Tensor* labels, std::int64_t valid_rows,
                           std::int64_t micro_batch) const {
  if (micro_batch == 0) {
    if (keeps_eight_bit_weights()) quantize_weights(b);
    return forward_by(b, ids, labels, valid_rows, micro_batch);
  }
  train::AddingGradients adding(b, set_);  // in chunks of the loss forward makes the head's
  forward_by(adding, ids, labels, valid_rows, micro_batch);
}

void DecoderModel::backward(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                            train::GradientListener* listener, std::int64_t micro_batch) const {
  if (micro_batch == 0) return backward_by(b, ids, labels, valid_rows, micro_batch, listener);
  train::AddingGradients adding(b, set_);
  backward_by(adding, ids, labels, valid_rows, micro_batch, listener);
}

void DecoderModel::whole_step(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                              std::int32_t left_multiprocessors) const {
  for (std::int64_t i = 0; i < config_.accumulation_steps; ++i) {
    const Tensor own_ids = ids.slice(0, i * config_.rows(), config_.rows());
    const Tensor own_labels = labels.slice(0, i * config_.rows(), config_.rows());
    forward(b, own_ids, &own_labels, valid_rows, i);
    if (!config_.backward) continue;
    if (i + 1 == config_.accumulation_steps) b.leave_multiprocessors(left_multiprocessors);
    backward(b, own_ids, own_labels, valid_rows, nullptr, i);
  }
  b.leave_multiprocessors(0);
}

void DecoderModel::forward_by(Backend& b, const Tensor& ids, const Tensor* labels, std::int64_t valid_rows,
                              std::int64_t micro_batch) const {
  const Tensor& x = config_.layers > 0 ? plan_[forward_[0].input] : plan_[final_input_];
  train::BlockParameters* const blocks = residence_.blocks;
  if (blocks) blocks->begin_forward(b), blocks->before_forward(b, 0);
  if (config_.is_split())
    embed_parts(b, ids, x);
  else
    b.run(op::EmbeddingForward{.ids = ids, .table = set_.compute(ids_.embeddings), .out = x});
  for (std::size_t l = 0; l < forward_.size(); ++l) {
    const Forward& f = forward_[l];
    if (blocks) blocks->before_forward(b, l + 1);
    // The fused path has normed1 from the end of the layer before.
    if (l == 0 || !config_.fused)
      b.run(op::RmsNormForward{.x = plan_[f.input],
                               .weight = set_.value(ids_.layers[l].ln1),
                               .y = own_rows(unless_eight_bits(f.normed1)),
                               .rstd = plan_[f.rstd1],
                               .eps = norm_eps(),
                               .eight_bits = as_read_by(f.qkv_8)});
    layer_body(b, static_cast<std::int64_t>(l), f, micro_batch);
    layer_end(b, static_cast<std::int64_t>(l), f);
  }
  if (config_.layers == 0 || !config_.fused)
    b.run(op::RmsNormForward{.x = plan_[final_input_],
                             .weight = set_.value(ids_.ln_final),
                             .y = own_rows(plan_[final_normed_]),
                             .rstd = plan_[final_rstd_],
                             .eps = norm_eps()});
  if (blocks) blocks->before_forward(b, block_of_head());
  head_forward(b, labels, valid_rows, micro_batch);
}

void DecoderModel::layer_body(Backend& b, std::int64_t layer, const Forward& f, std::int64_t micro_batch,
                              bool routes) const {
  const DecoderLayerParameters& p = ids_.layers[static_cast<std::size_t>(layer)];
  const Tensor& qkv = plan_[f.qkv];
  gather_rows(b, plan_[f.normed1]);
  if (config_.fused) {
    project(b, plan_[f.normed1], p.q, 3, f.qkv_8, qkv, bias_of(p, 0, 3));
  } else {
    for (int i = 0; i < 3; ++i)
      models::project(b, plan_[f.normed1], set_.compute(p.q + static_cast<std::size_t>(i)), columns_of(qkv, i),
                      bias_of(p, i, 1));
  }
  rotate(b, qkv, false);
  attention_forward(b, f);
  quantize_for(b, plan_[f.attention], f.output_8);
  if (config_.fused) {
    end_branch(b,
               {.x = plan_[f.attention],
                .weight = p.output,
                .branch = f.branch1,
                .residual = f.input,
                .sum = f.middle,
                .norm_weight = set_.value(p.ln2),
                .normed = unless_eight_bits(f.normed2),
                .rstd = plan_[f.rstd2],
                .eight_bits = as_read_by(f.gate_up_8)},
               f.output_8);
    gather_rows(b, plan_[f.normed2]);
  } else {
    project(b, plan_[f.attention], p.output, 1, f.output_8, plan_[f.branch1]);
    b.run(op::Add{.a = plan_[f.branch1], .b = plan_[f.input], .out = plan_[f.middle]});
    b.run(op::RmsNormForward{.x = plan_[f.middle],
                             .weight = set_.value(p.ln2),
                             .y = plan_[f.normed2],
                             .rstd = plan_[f.rstd2],
                             .eps = norm_eps()});
  }
  if (config_.has_experts(layer)) {
    if (routes) route(b, layer, f, micro_batch);
    experts_body(b, layer, f);
  } else if (config_.fused) {
    project(b, plan_[f.normed2], p.w1, 2, f.gate_up_8, plan_[f.gate_up]);
  } else {
    models::project(b, plan_[f.normed2], set_.compute(p.w1), gate_up(f).gate);
    models::project(b, plan_[f.normed2], set_.compute(p.w3), gate_up(f).up);
  }
}

void DecoderModel::layer_end(Backend& b, std::int64_t layer, const Forward& f) const {
  const auto l = static_cast<std::size_t>(layer);
  const bool last = l + 1 == forward_.size();
  const Id next = last ? final_input_ : forward_[l + 1].input;
  if (config_.has_experts(layer)) {
    experts_end(b, layer, f, next);
    if (!config_.fused) return;
    return b.run(op::RmsNormForward{.x = plan_[next],
                                    .weight = set_.value(last ? ids_.ln_final : ids_.layers[l + 1].ln1),
                                    .y = plan_[last ? final_normed_ : forward_[l + 1].normed1],
                                    .rstd = plan_[last ? final_rstd_ : forward_[l + 1].rstd1],
                                    .eps = norm_eps()});
  }
  const GateUp gu = gate_up(f);
  if (config_.fused) {
    b.run(op::SwigluForward{
        .gate = gu.gate, .up = gu.up, .h = unless_eight_bits(f.hidden), .eight_bits = as_read_by(f.w2_8)});
  } else {
    b.run(op::ActivationForward{.kind = Activation::silu, .x = gu.gate, .y = plan_[f.silu]});
    b.run(op::Multiply{.a = plan_[f.silu], .b = gu.up, .out = plan_[f.hidden]});
  }
  if (!config_.fused) {
    project(b, plan_[f.hidden], ids_.layers[l].w2, 1, f.w2_8, plan_[f.branch2]);
    return b.run(op::Add{.a = plan_[f.branch2], .b = plan_[f.middle], .out = plan_[next]});
  }
  end_branch(b,
             {.x = plan_[f.hidden],
              .weight = ids_.layers[l].w2,
              .branch = f.branch2,
              .residual = f.middle,
              .sum = next,
              .norm_weight = set_.value(last ? ids_.ln_final : ids_.layers[l + 1].ln1),
              .normed = last ? plan_[final_normed_] : unless_eight_bits(forward_[l + 1].normed1),
              .rstd = plan_[last ? final_rstd_ : forward_[l + 1].rstd1],
              .eight_bits = last ? op::EightBitRows() : as_read_by(forward_[l + 1].qkv_8)},
             f.w2_8);
}

void DecoderModel::end_branch(Backend& b, const BranchEnd& end, const EightBits& by) const {
  if (adds_in_products()) {
    b.run(op::Matmul{.a = end.x,
                     .b = set_.compute(end.weight),
                     .c = plan_[end.sum],
                     .transpose_b = true,
                     .residual = plan_[end.residual]});
    return b.run(op::RmsNormForward{
        .x = plan_[end.sum], .weight = end.norm_weight, .y = end.normed, .rstd = end.rstd, .eps = norm_eps()});
  }
  project(b, end.x, end.weight, 1, by, plan_[end.branch]);
  sum_to_rows(b, plan_[end.branch]);
  b.run(op::AddRmsNormForward{.x = own_rows(plan_[end.branch]),
                              .residual = plan_[end.residual],
                              .sum = plan_[end.sum],
                              .weight = end.norm_weight,
                              .y = own_rows(end.normed),
                              .rstd = end.rstd,
                              .eps = norm_eps(),
                              .eight_bits = end.eight_bits});
}

void DecoderModel::attention_forward(Backend& b, const Forward& f) const {
  if (config_.shares_context()) return context_attention_forward(b, f);
  const Tensor& qkv = plan_[f.qkv];
  const Tensor q = heads_of(qkv, 0);
  const Tensor k = heads_of(qkv, 1);
  const Tensor v = heads_of(qkv, 2);
  const Tensor out = split_heads(plan_[f.attention]);
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_width()));
  if (config_.flash)
    return b.run(op::AttentionForward{.q = q, .k = k, .v = v, .out = out, .lse = plan_[f.lse], .shape = {scale, true}});
  if (makes_scores_in_parts()) return naive_attention().forward(b, q, k, v, out, plan_[f.scores], scale);
  const Tensor& scores = plan_[f.scores];
  NaiveProducts::scores(b, q, k, scores);
  b.run(op::SoftmaxForward{.x = scores, .y = scores, .scale = scale, .causal = true});
  NaiveProducts::of_queries(b, scores, v, out);
}

// With lanes the listener hears of what a join has brought to the main lane: then of all that is enqueued before it,
// but the gradients of query, key and value, whose product begins after its layer's join.
void DecoderModel::backward_by(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                               std::int64_t micro_batch, train::GradientListener* listener) const {
  if (config_.is_split()) {
    if (listener)
      throw Error(ASSAY_INVALID_ARGUMENT, "a split model tells no listener of its gradients; expected none");
    return split_backward(b, ids, labels, valid_rows);
  }
  head_backward(b, labels, valid_rows, listener);
  train::BlockParameters* const blocks = residence_.blocks;
  for (std::int64_t l = config_.layers - 1; l >= 0; --l) {
    if (blocks) blocks->before_backward(b, block_of_layer(l));
    layer_backward(b, l, micro_batch, listener);
    if (blocks) blocks->after_backward(b, block_of_layer(l));
  }
  if (blocks) blocks->before_backward(b, 0);
  if (lanes() && is_tied()) b.join_side();  // the head's gradient is added to
  b.run(op::EmbeddingBackward{
      .ids = ids, .dout = plan_[dx_], .dtable = set_.gradient(ids_.embeddings), .accumulate = is_tied()});
  if (blocks) blocks->after_backward(b, 0);
  if (lanes()) b.join_side();
  if (listener) listener->gradients_ready(set_.all().size());
}

void DecoderModel::tell(train::GradientListener* listener, train::ParameterSet::Id end) const {
  if (listener && !lanes()) listener->gradients_ready(end);
}

void DecoderModel::head_backward(Backend& b, const Tensor& labels, std::int64_t valid_rows,
                                 train::GradientListener* listener) const {
  train::BlockParameters* const blocks = residence_.blocks;
  if (blocks) blocks->before_backward(b, block_of_head());
  if (!makes_loss_in_chunks())
    head_products(b, labels, valid_rows, 0, config_.rows(), listener);
  else if (!is_tied())
    tell(listener, ids_.lm_head + 1);  // which forward has made
  if (blocks) blocks->after_backward(b, block_of_head());
  b.run(op::RmsNormBackward{.dy = plan_[dfinal_],
                            .x = plan_[final_input_],
                            .weight = set_.value(ids_.ln_final),
                            .rstd = plan_[final_rstd_],
                            .dx = plan_[dx_],
                            .dweight = set_.gradient(ids_.ln_final),
                            .eight_bits = gradient_of_layers_end(config_.layers)});
  tell(listener, ids_.ln_final + 1);
}

void DecoderModel::layer_backward(Backend& b, std::int64_t layer, std::int64_t micro_batch,
                                  train::GradientListener* listener) const {
  const auto l = static_cast<std::size_t>(layer);
  const DecoderLayerParameters& p = ids_.layers[l];
  const Forward& f = recomputed_[l];
  const Backward& g = backward_[l];
  if (config_.checkpointing) {
    b.run(op::RmsNormForward{.x = plan_[f.input],
                             .weight = set_.value(p.ln1),
                             .y = unless_eight_bits(f.normed1),
                             .rstd = plan_[f.rstd1],
                             .eps = norm_eps(),
                             .eight_bits = as_read_by(f.qkv_8)});
    layer_body(b, layer, f, micro_batch, false);
    if (eight_bit_weight_gradients())
      b.run(op::SwigluForward{.gate = gate_up(f).gate, .up = gate_up(f).up, .eight_bits = as_read_by(f.w2_8)});
  }
  const train::PartExchange::Ticket gathering = start_gathering_keys_again(b, f, g);
  if (config_.has_experts(layer))
    experts_backward(b, layer, f, g, micro_batch, listener);
  else
    feed_forward_backward(b, p, f, g, listener);

  const Tensor& dx = plan_[dx_middle_];
  weight_gradient(b, dx_middle_, f.attention, p.output, 1, g.output_8, f.output_8);
  tell(listener, p.output + 1);
  project_back(b, dx, p.output, 1, g.output_8, plan_[g.dattention]);
  attention_backward(b, f, g, gathering);
  const Tensor& dqkv = plan_[g.dqkv];
  rotate(b, dqkv, true);
  if (config_.qkv_bias) b.run(op::BiasBackward{.dy = dqkv, .dbias = set_.gradient(p.q_bias, 3)});
  if (config_.fused) {
    quantize_for(b, dqkv, g.qkv_8);
    project_back(b, dqkv, p.q, 3, g.qkv_8, plan_[g.dnormed1]);
    if (lanes()) {
      b.join_side();
      if (listener) listener->gradients_ready(p.q);
    }
    norm_backward(b, p.ln1, plan_[g.dnormed1], plan_[f.input], plan_[f.rstd1], dx, plan_[dx_], made_again(g.normed1),
                  gradient_of_layers_end(layer));
    weight_gradient(b, g.dqkv, keeps_outputs() ? f.normed1 : g.normed1, p.q, 3, g.qkv_8, f.qkv_8);
    return tell(listener, p.ln1 + 1);
  }
  b.run(op::RmsNormForward{.x = plan_[f.input],
                           .weight = set_.value(p.ln1),
                           .y = plan_[g.normed1],
                           .rstd = plan_[f.rstd1],
                           .eps = norm_eps()});
  for (int i = 0; i < 3; ++i) {
    const Tensor part = columns_of(dqkv, i);
    const train::ParameterSet::Id id = p.q + static_cast<std::size_t>(i);
    weight_gradient(b, part, plan_[g.normed1], id);
    b.run(op::Matmul{.a = part, .b = set_.compute(id), .c = plan_[g.dnormed1], .accumulate = i > 0});
  }
  tell(listener, p.v + 1);
  norm_backward(b, p.ln1, plan_[g.dnormed1], plan_[f.input], plan_[f.rstd1], dx, plan_[dx_], {});
  tell(listener, p.ln1 + 1);
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
                            .y = y,
                            .eight_bits = eight_bits});
}

void DecoderModel::feed_forward_backward(Backend& b, const DecoderLayerParameters& p, const Forward& f,
                                         const Backward& g, train::GradientListener* listener) const {
  const Tensor& dx = plan_[dx_];
  const GateUp gu = gate_up(f);
  project_back(b, dx, p.w2, 1, g.w2_8, plan_[g.dhidden]);
  const Tensor& dmiddle = plan_[dx_middle_];
  if (config_.fused) {
    b.run(op::SwigluBackward{.gate = gu.gate,
                             .up = gu.up,
                             .dh = plan_[g.dhidden],
                             .dgate = unless_eight_bit_weight_gradients(gu.gate),
                             .dup = unless_eight_bit_weight_gradients(gu.up),
                             .h = made_again(g.hidden),
                             .eight_bits = as_read_by(g.gate_up_8)});
    weight_gradient(b, dx_, keeps_outputs() ? f.hidden : g.hidden, p.w2, 1, g.w2_8, f.w2_8);
    tell(listener, p.w2 + 1);
    project_back(b, gu.packed, p.w1, 2, g.gate_up_8, plan_[g.dnormed2]);
    norm_backward(b, p.ln2, plan_[g.dnormed2], plan_[f.middle], plan_[f.rstd2], dx, dmiddle, made_again(g.normed2),
                  as_read_by(g.output_8));
    weight_gradient(b, f.gate_up, keeps_outputs() ? f.normed2 : g.normed2, p.w1, 2, g.gate_up_8, f.gate_up_8);
    return tell(listener, p.ln2 + 1);
  }
  b.run(op::ActivationForward{.kind = Activation::silu, .x = gu.gate, .y = plan_[g.silu]});
  b.run(op::Multiply{.a = plan_[g.silu], .b = gu.up, .out = plan_[g.hidden]});
  weight_gradient(b, dx, plan_[g.hidden], p.w2);
  tell(listener, p.w2 + 1);
  b.run(op::Multiply{.a = plan_[g.dhidden], .b = gu.up, .out = plan_[g.dsilu]});
  b.run(op::Multiply{.a = plan_[g.dhidden], .b = plan_[g.silu], .out = gu.up});  // now the gradient of up
  b.run(op::ActivationBackward{
      .kind = Activation::silu, .x = gu.gate, .dy = plan_[g.dsilu], .dx = plan_[g.dsilu]});  // now the gradient of gate
  b.run(op::RmsNormForward{.x = plan_[f.middle],
                           .weight = set_.value(p.ln2),
                           .y = plan_[g.normed2],
                           .rstd = plan_[f.rstd2],
                           .eps = norm_eps()});
  weight_gradient(b, plan_[g.dsilu], plan_[g.normed2], p.w1);
  weight_gradient(b, gu.up, plan_[g.normed2], p.w3);
  tell(listener, p.w3 + 1);
  b.run(op::Matmul{.a = plan_[g.dsilu], .b = set_.compute(p.w1), .c = plan_[g.dnormed2]});
  b.run(op::Matmul{.a = gu.up, .b = set_.compute(p.w3), .c = plan_[g.dnormed2], .accumulate = true});
  norm_backward(b, p.ln2, plan_[g.dnormed2], plan_[f.middle], plan_[f.rstd2], dx, dmiddle, {});
  tell(listener, p.ln2 + 1);
}

void DecoderModel::attention_backward(Backend& b, const Forward& f, const Backward& g,
                                      train::PartExchange::Ticket gathering) const {
  if (config_.shares_context()) return context_attention_backward(b, f, g, gathering);
  const Tensor& qkv = plan_[f.qkv];
  const Tensor& dqkv = plan_[g.dqkv];
  const Tensor q = heads_of(qkv, 0);
  const Tensor k = heads_of(qkv, 1);
  const Tensor v = heads_of(qkv, 2);
  const Tensor dq = heads_of(dqkv, 0);
  const Tensor dk = heads_of(dqkv, 1);
  const Tensor dv = heads_of(dqkv, 2);
  const Tensor dout = split_heads(plan_[g.dattention]);
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_width()));
  if (config_.flash)
    return b.run(op::AttentionBackward{.q = q,
                                       .k = k,
                                       .v = v,
                                       .out = split_heads(plan_[f.attention]),
                                       .lse = plan_[f.lse],
                                       .dout = dout,
                                       .dq = dq,
                                       .dk = dk,
                                       .dv = dv,
                                       .shape = {scale, true}});
  if (makes_scores_in_parts())
    return naive_attention().backward(b, q, k, v, dout, dq, dk, dv, plan_[g.scores], plan_[g.dscores], scale);
  const Tensor& probabilities = plan_[f.scores];
  const Tensor& dscores = plan_[g.dscores];
  NaiveProducts::scores(b, dout, v, dscores);
  NaiveProducts::of_keys(b, probabilities, dout, dv, false);
  b.run(op::SoftmaxBackward{.y = probabilities, .dy = dscores, .dx = dscores, .scale = scale});
  NaiveProducts::of_queries(b, dscores, k, dq);
  NaiveProducts::of_keys(b, dscores, q, dk, false);
}

}  // namespace assay::models
