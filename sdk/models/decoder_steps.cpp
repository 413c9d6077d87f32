// The decoder's forward and backward passes.
#include <assay/train/gradient_accumulation.hpp>

#include "decoder_split_pass.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

namespace {

// y = x w^T (+ bias)
void project(Backend& b, const Tensor& x, const Tensor& w, const Tensor& y, const Tensor& bias = {}) {
  b.run(op::Matmul{.a = x, .b = w, .c = y, .transpose_b = true, .bias = bias});
}

}  // namespace

void DecoderModel::initialize(Backend& b) const {
  if (config_.shares_context()) return rotation_of_own_chunks(b);
  if (config_.rope_local_theta > 0)
    b.run(op::RotaryTable{.cos = plan_[local_cos_], .sin = plan_[local_sin_], .theta = config_.rope_local_theta});
  b.run(op::RotaryTable{
      .cos = plan_[cos_], .sin = plan_[sin_], .theta = config_.rope_theta, .scaling = config_.rope_scaling});
  initialize_experts(b);
  initialize_documents(b);
}

Tensor DecoderModel::split_heads(const Tensor& x) const {
  return x.view({config_.batch_size, config_.own_context(), config_.own_heads(), config_.value_width()});
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
  return packed.view(
      {packed.dim(0) / c.own_context(), c.own_context(), c.own_heads() + 2 * c.own_key_heads(), c.head_width()});
}

}  // namespace

Tensor DecoderModel::heads_of(const Tensor& packed, int which) const {
  const Heads at = heads_at(config_, which);
  return by_heads(config_, packed).slice(2, at.first, at.count);
}

Tensor DecoderModel::columns_of(const Tensor& packed, int which) const {
  if (config_.latent.any()) {
    const std::int64_t queries = config_.latent.query_width(config_.heads);
    return which == 0 ? packed.slice(1, 0, queries) : packed.slice(1, queries, config_.latent.down_width());
  }
  const Heads at = heads_at(config_, which);
  return packed.slice(1, at.first * config_.head_width(), at.count * config_.head_width());
}

Tensor DecoderModel::bias_of(const DecoderLayerParameters& p, int which, std::size_t count) const {
  return config_.qkv_bias ? set_.compute(p.q_bias + static_cast<std::size_t>(which), count) : Tensor();
}

// Queries and keys lie side by side: fused, they are one tensor of all their heads.
void DecoderModel::rotate(Backend& b, std::int64_t layer, const Tensor& packed, bool inverse) const {
  const Tensor &cos = cos_of(layer), &sin = sin_of(layer);
  if (config_.fused)
    return b.run(op::Rotary{.x = by_heads(config_, packed).slice(2, 0, config_.own_heads() + config_.own_key_heads()),
                            .cos = cos,
                            .sin = sin,
                            .inverse = inverse});
  for (int i = 0; i < 2; ++i) b.run(op::Rotary{.x = heads_of(packed, i), .cos = cos, .sin = sin, .inverse = inverse});
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
  const Tensor sums = summed_gradients();
  if (!sums) return forward_by(b, ids, labels, valid_rows, micro_batch);
  train::AddingGradients adding(b, sums);  // in chunks of the loss forward makes the head's
  forward_by(adding, ids, labels, valid_rows, micro_batch);
}

Tensor DecoderModel::summed_gradients() const {
  return residence_.blocks ? residence_.blocks->summed_gradients() : set_.all_gradients();
}

void DecoderModel::backward(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                            train::GradientListener* listener, std::int64_t micro_batch) const {
  const Tensor sums = micro_batch > 0 ? summed_gradients() : Tensor();
  if (!sums) return backward_by(b, ids, labels, valid_rows, micro_batch, listener);
  train::AddingGradients adding(b, sums);
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
  if (config_.is_split()) {
    SplitPass(*this, b).forward(ids);
    return head_forward(b, labels, valid_rows, micro_batch);
  }
  const Tensor& x = config_.layers > 0 ? plan_[forward_[0].input] : plan_[final_input_];
  train::BlockParameters* const blocks = residence_.blocks;
  if (blocks) blocks->begin_forward(b, micro_batch), blocks->before_forward(b, 0);
  if (!config_.stage.has_embedding)
    note_given(b, x);
  else
    b.run(op::EmbeddingForward{.ids = ids, .table = set_.compute(ids_.embeddings), .out = x});
  if (config_.scaled_embeddings && config_.stage.has_embedding)
    b.run(op::Scale{.x = x, .factor = embedding_factor(), .out = x});
  for (std::size_t l = 0; l < forward_.size(); ++l) {
    const Forward& f = forward_[l];
    if (blocks) blocks->before_forward(b, visit_of_layer(static_cast<std::int64_t>(l)));
    // The fused path has normed1 from the end of the layer before.
    if (l == 0 || !config_.fused)
      b.run(op::RmsNormForward{.x = plan_[f.input],
                               .weight = set_.value(ids_.layers[l].ln1),
                               .y = unless_eight_bits(f.normed1),
                               .rstd = plan_[f.rstd1],
                               .eps = norm_eps(),
                               .weight_offset = norm_offset(),
                               .eight_bits = as_read_by(f.qkv_8)});
    layer_body(b, static_cast<std::int64_t>(l), f, micro_batch);
    layer_end(b, static_cast<std::int64_t>(l), f);
  }
  if (!config_.stage.has_head) return note_use(b, plan_[final_input_]);
  if (config_.layers == 0 || !config_.fused)
    b.run(op::RmsNormForward{.x = plan_[final_input_],
                             .weight = set_.value(ids_.ln_final),
                             .y = plan_[final_normed_],
                             .rstd = plan_[final_rstd_],
                             .eps = norm_eps(),
                             .weight_offset = norm_offset()});
  if (blocks) blocks->before_forward(b, visit_of_head());
  head_forward(b, labels, valid_rows, micro_batch);
}

void DecoderModel::layer_body(Backend& b, std::int64_t layer, const Forward& f, std::int64_t micro_batch,
                              bool routes) const {
  const DecoderLayerParameters& p = ids_.layers[static_cast<std::size_t>(layer)];
  const Tensor& qkv = plan_[f.qkv];
  if (config_.fused) {
    project(b, plan_[f.normed1], p.q, products_of_token(), f.qkv_8, qkv, bias_of(p, 0, 3));
  } else {
    for (std::size_t i = 0; i < products_of_token(); ++i)
      models::project(b, plan_[f.normed1], set_.compute(p.q + i), columns_of(qkv, static_cast<int>(i)),
                      bias_of(p, static_cast<int>(i), 1));
  }
  turn_heads(b, layer, f, all_rows());
  attention_forward(b, layer, f, all_rows());
  quantize_for(b, plan_[f.attention], f.output_8);
  if (config_.fused) {
    end_branch(b,
               {.x = plan_[f.attention],
                .weight = p.output,
                .bias = output_bias_of(p),
                .branch = f.branch1,
                .residual = f.input,
                .sum = f.middle,
                .post_weight = p.attention_norm,
                .post = f.post1,
                .norm_weight = set_.value(p.ln2),
                .normed = unless_eight_bits(f.normed2),
                .rstd = plan_[f.rstd2],
                .eight_bits = as_read_by(f.gate_up_8)},
               f.output_8);
  } else {
    project(b, plan_[f.attention], p.output, 1, f.output_8, plan_[f.branch1], output_bias_of(p));
    b.run(op::Add{
        .a = end_of_branch(b, f.branch1, f.post1, p.attention_norm), .b = plan_[f.input], .out = plan_[f.middle]});
    b.run(op::RmsNormForward{.x = plan_[f.middle],
                             .weight = set_.value(p.ln2),
                             .y = plan_[f.normed2],
                             .rstd = plan_[f.rstd2],
                             .eps = norm_eps(),
                             .weight_offset = norm_offset()});
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
                                    .eps = norm_eps(),
                                    .weight_offset = norm_offset()});
  }
  gated_unit(b, f);
  if (!config_.fused || (last && !config_.stage.has_head)) {  // no norm is behind it
    project(b, plan_[f.hidden], ids_.layers[l].w2, 1, f.w2_8, plan_[f.branch2]);
    return b.run(op::Add{
        .a = end_of_branch(b, f.branch2, f.post2, ids_.layers[l].ffw_norm), .b = plan_[f.middle], .out = plan_[next]});
  }
  end_branch(b,
             {.x = plan_[f.hidden],
              .weight = ids_.layers[l].w2,
              .branch = f.branch2,
              .residual = f.middle,
              .sum = next,
              .post_weight = ids_.layers[l].ffw_norm,
              .post = f.post2,
              .norm_weight = set_.value(last ? ids_.ln_final : ids_.layers[l + 1].ln1),
              .normed = last ? plan_[final_normed_] : unless_eight_bits(forward_[l + 1].normed1),
              .rstd = plan_[last ? final_rstd_ : forward_[l + 1].rstd1],
              .eight_bits = last ? op::EightBitRows() : as_read_by(forward_[l + 1].qkv_8)},
             f.w2_8);
}

// With lanes the listener hears of what a join has brought to the main lane: then of all that is enqueued before it,
// but the gradients of query, key and value, whose product begins after its layer's join.
void DecoderModel::backward_by(Backend& b, const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                               std::int64_t micro_batch, train::GradientListener* listener) const {
  if (config_.is_split()) return SplitPass(*this, b).backward(ids, labels, valid_rows, listener);
  if (config_.stage.has_head)
    head_backward(b, labels, valid_rows, listener);
  else
    note_given(b, plan_[dx_]);
  train::BlockParameters* const blocks = residence_.blocks;
  for (std::int64_t l = config_.layers - 1; l >= 0; --l) {
    if (blocks) blocks->before_backward(b, visit_of_layer(l));
    layer_backward(b, l, micro_batch, listener);
    if (blocks) blocks->after_backward(b, visit_of_layer(l));
  }
  if (!config_.stage.has_embedding) return note_use(b, plan_[dx_]);
  if (blocks) blocks->before_backward(b, 0);
  if (lanes() && is_tied()) b.join_side();  // the head's gradient is added to
  if (config_.scaled_embeddings) b.run(op::Scale{.x = plan_[dx_], .factor = embedding_factor(), .out = plan_[dx_]});
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
  if (blocks) blocks->before_backward(b, visit_of_head());
  if (!makes_loss_in_chunks())
    head_products(b, labels, valid_rows, 0, config_.rows(), listener);
  else if (!is_tied())
    tell(listener, ids_.lm_head + 1);  // which forward has made
  if (blocks) blocks->after_backward(b, visit_of_head());
  b.run(op::RmsNormBackward{.dy = plan_[dfinal_],
                            .x = plan_[final_input_],
                            .weight = set_.value(ids_.ln_final),
                            .rstd = plan_[final_rstd_],
                            .dx = plan_[dx_],
                            .dweight = set_.gradient(ids_.ln_final),
                            .weight_offset = norm_offset(),
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
                             .weight_offset = norm_offset(),
                             .eight_bits = as_read_by(f.qkv_8)});
    layer_body(b, layer, f, micro_batch, false);
    if (eight_bit_weight_gradients())
      b.run(op::SwigluForward{.gate = gate_up(f).gate, .up = gate_up(f).up, .eight_bits = as_read_by(f.w2_8)});
    if (config_.post_norms) {  // the norm at the layer's end reads the branch
      gated_unit(b, f);
      project(b, plan_[f.hidden], p.w2, 1, f.w2_8, plan_[f.branch2]);
      end_of_branch(b, f.branch2, f.post2, p.ffw_norm);
    }
  }
  const train::PartExchange::Ticket gathering = start_gathering_keys_again(b, f, g);
  if (config_.has_experts(layer))
    experts_backward(b, layer, f, g, micro_batch, listener);
  else
    feed_forward_backward(b, p, f, g, listener);

  const Tensor& dx = plan_[dx_middle_];
  const Id by_branch = branch_gradient(b, dx_middle_, f.branch1, f.post1, p.attention_norm, g.dbranch1);
  if (config_.output_bias) b.run(op::BiasBackward{.dy = plan_[by_branch], .dbias = set_.gradient(p.output_bias)});
  weight_gradient(b, by_branch, f.attention, p.output, 1, g.output_8, f.output_8);
  tell(listener, (config_.output_bias ? p.output_bias : p.output) + 1);
  project_back(b, plan_[by_branch], p.output, 1, g.output_8, plan_[g.dattention]);
  attention_backward(b, layer, f, g, gathering);
  turn_heads_back(b, layer, f, g);
  const Tensor& dqkv = plan_[g.dqkv];
  if (config_.qkv_bias) b.run(op::BiasBackward{.dy = dqkv, .dbias = set_.gradient(p.q_bias, 3)});
  if (config_.fused) {
    quantize_for(b, dqkv, g.qkv_8);
    project_back(b, dqkv, p.q, products_of_token(), g.qkv_8, plan_[g.dnormed1]);
    if (lanes()) {
      b.join_side();
      if (listener) listener->gradients_ready(p.q);
    }
    norm_backward(b, p.ln1, plan_[g.dnormed1], plan_[f.input], plan_[f.rstd1], dx, plan_[dx_], made_again(g.normed1),
                  gradient_of_layers_end(layer));
    weight_gradient(b, g.dqkv, keeps_outputs() ? f.normed1 : g.normed1, p.q, products_of_token(), g.qkv_8, f.qkv_8);
    return tell(listener, p.ln1 + 1);
  }
  b.run(op::RmsNormForward{.x = plan_[f.input],
                           .weight = set_.value(p.ln1),
                           .y = plan_[g.normed1],
                           .rstd = plan_[f.rstd1],
                           .eps = norm_eps(),
                           .weight_offset = norm_offset()});
  for (std::size_t i = 0; i < products_of_token(); ++i) {
    const Tensor part = columns_of(dqkv, static_cast<int>(i));
    const train::ParameterSet::Id id = p.q + i;
    weight_gradient(b, part, plan_[g.normed1], id);
    b.run(op::Matmul{.a = part, .b = set_.compute(id), .c = plan_[g.dnormed1], .accumulate = i > 0});
  }
  tell(listener, p.q + products_of_token());
  norm_backward(b, p.ln1, plan_[g.dnormed1], plan_[f.input], plan_[f.rstd1], dx, plan_[dx_], {});
  tell(listener, p.ln1 + 1);
}

}  // namespace assay::models
