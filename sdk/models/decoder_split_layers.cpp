// The layers of a decoder whose products are split over ranks.
#include "decoder_split_pass.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Tensor;

// ---- forward -------------------------------------------------------------------------------------------------------

DecoderModel::SplitPass::Branch DecoderModel::SplitPass::attention_branch(std::int64_t layer, const Forward& f) const {
  const DecoderLayerParameters& p = m_.layer_ids(layer);
  return {.x = buffer(f.attention),
          .weight = p.output,
          .terms = buffer(f.branch1),
          .residual = buffer(f.input),
          .sum = buffer(f.middle),
          .norm = p.ln2,
          .normed = buffer(f.normed2),
          .rstd = buffer(f.rstd2)};
}

DecoderModel::SplitPass::Branch DecoderModel::SplitPass::feed_forward_branch(std::int64_t layer,
                                                                             const Forward& f) const {
  const bool last = layer + 1 == config().layers;
  const Forward& next = m_.forward_[index_of(last ? layer : layer + 1)];
  return {.x = buffer(f.hidden),
          .weight = m_.layer_ids(layer).w2,
          .terms = buffer(f.branch2),
          .residual = buffer(f.middle),
          .sum = buffer(last ? m_.final_input_ : next.input),
          .norm = last ? m_.ids_.ln_final : m_.layer_ids(layer + 1).ln1,
          .normed = buffer(last ? m_.final_normed_ : next.normed1),
          .rstd = buffer(last ? m_.final_rstd_ : next.rstd1)};
}

void DecoderModel::SplitPass::norm(train::ParameterSet::Id weight, const Tensor& x, const Tensor& rstd, const Tensor& y,
                                   const RowRange& rows) {
  b_.run(op::RmsNormForward{.x = rows_.kept(x, rows),
                            .weight = m_.set_.value(weight),
                            .y = rows_.own(y, rows),
                            .rstd = rows_.kept(rstd, rows),
                            .eps = m_.norm_eps()});
}

// Norms a residual stream that no branch has been added to, chunk by chunk.
void DecoderModel::SplitPass::first_norm(train::ParameterSet::Id weight, Id x, Id rstd, const Tensor& y) {
  for (arrived_ = 0; arrived_ < rows_.chunks().size(); ++arrived_) {
    const RowRange& rows = rows_.chunks()[arrived_];
    norm(weight, buffer(x), buffer(rstd), y, rows);
    tickets_[arrived_] = start_gathering(y, rows);
  }
}

// Waits until the chunk's terms have been summed, and norms it.
void DecoderModel::SplitPass::arrive(const Branch& before, std::size_t chunk) {
  const RowRange& rows = rows_.chunks()[chunk];
  m_.wait(b_, tickets_[chunk], rows_.of(before.terms, rows));
  b_.run(op::AddRmsNormForward{.x = rows_.own(before.terms, rows),
                               .residual = rows_.kept(before.residual, rows),
                               .sum = rows_.kept(before.sum, rows),
                               .weight = m_.set_.value(before.norm),
                               .y = rows_.own(before.normed, rows),
                               .rstd = rows_.kept(before.rstd, rows),
                               .eps = m_.norm_eps()});
  tickets_[chunk] = start_gathering(before.normed, rows);
  arrived_ = chunk + 1;
}

// Makes the product at the end of a branch, and starts to sum its terms.
void DecoderModel::SplitPass::depart(const Branch& branch, std::size_t chunk) {
  const RowRange& rows = rows_.chunks()[chunk];
  m_.project(b_, rows_.of(branch.x, rows), branch.weight, 1, {}, rows_.of(branch.terms, rows));
  tickets_[chunk] = start_summing(branch.terms, rows);
}

// For each chunk: the norm at the end of the branch before, `product` of what it gave, and, unless left out, the
// product at the end of `branch`. A gather needs products to run beside, as a sum does: with gathers the norm of the
// next chunk comes before the last of these products, so that both exchanges have one.
void DecoderModel::SplitPass::enter(const Branch& before, const OfRows& product, const Branch* branch) {
  const std::size_t chunks = rows_.chunks().size();
  std::size_t arrived = 0;  // of the next segment
  for (std::size_t i = 0; i < chunks; ++i) {
    const RowRange& rows = rows_.chunks()[i];
    if (arrived_ <= i) arrive(before, i);
    m_.wait(b_, tickets_[i], rows_.of(before.normed, rows));
    product(rows);
    if (!branch) continue;
    if (gathers() && i + 1 < chunks && arrived_ <= i + 1) arrive(before, i + 1);
    if (gathers() && chunks > 1 && i + 1 == chunks) {
      arrive(*branch, 0);
      arrived = 1;
    }
    depart(*branch, i);
  }
  arrived_ = arrived;
}

void DecoderModel::SplitPass::attention_segment(const Branch& before, const Branch& branch, std::int64_t layer,
                                                const Forward& f) {
  const DecoderLayerParameters& p = m_.layer_ids(layer);
  const auto attention = [&](const RowRange& rows) {
    m_.turn_heads(b_, layer, f, rows);
    m_.attention_forward(b_, layer, f, rows);
  };
  const bool in_chunks = rows_.are_sequences() && m_.reads_sequences_alone();
  enter(
      before,
      [&](const RowRange& rows) {
        m_.project(b_, rows_.of(before.normed, rows), p.q, 3, {}, rows_.of(buffer(f.qkv), rows), m_.bias_of(p, 0, 3));
        if (in_chunks) attention(rows);
      },
      in_chunks ? &branch : nullptr);
  if (in_chunks) return;
  attention(m_.all_rows());
  for (std::size_t i = 0; i < rows_.chunks().size(); ++i) depart(branch, i);
}

void DecoderModel::SplitPass::gate_up(const DecoderLayerParameters& p, const Forward& f, const RowRange& rows) {
  m_.project(b_, rows_.of(buffer(f.normed2), rows), p.w1, 2, {}, rows_.of(buffer(f.gate_up), rows));
}

void DecoderModel::SplitPass::forward(const Tensor& ids) {
  const auto& layers = m_.forward_;
  embed(ids, buffer(layers.empty() ? m_.final_input_ : layers[0].input));
  if (layers.empty())
    first_norm(m_.ids_.ln_final, m_.final_input_, m_.final_rstd_, buffer(m_.final_normed_));
  else
    first_norm(m_.layer_ids(0).ln1, layers[0].input, layers[0].rstd1, buffer(layers[0].normed1));
  Branch before{.normed = buffer(layers.empty() ? m_.final_normed_ : layers[0].normed1)};
  for (std::int64_t l = 0; l < config().layers; ++l) {
    const Forward& f = layers[index_of(l)];
    const GateUp gu = m_.gate_up(f);
    const Branch of_attention = attention_branch(l, f), of_feed_forward = feed_forward_branch(l, f);
    attention_segment(before, of_attention, l, f);
    enter(
        of_attention,
        [&](const RowRange& rows) {
          gate_up(m_.layer_ids(l), f, rows);
          b_.run(op::SwigluForward{
              .gate = rows_.of(gu.gate, rows), .up = rows_.of(gu.up, rows), .h = rows_.of(buffer(f.hidden), rows)});
        },
        &of_feed_forward);
    before = of_feed_forward;
  }
  enter(
      before, [](const RowRange&) {}, nullptr);
}

// ---- backward ------------------------------------------------------------------------------------------------------

// Repeats the forward from the layer's input to gate and up.
void DecoderModel::SplitPass::make_again(std::int64_t layer, const Forward& f) {
  first_norm(m_.layer_ids(layer).ln1, f.input, f.rstd1, buffer(f.normed1));
  const Branch of_attention = attention_branch(layer, f);
  attention_segment({.normed = buffer(f.normed1)}, of_attention, layer, f);
  enter(
      of_attention, [&](const RowRange& rows) { gate_up(m_.layer_ids(layer), f, rows); }, nullptr);
}

// Makes the output of a norm once more, unless recomputation has left it there.
DecoderModel::SplitPass::Tickets DecoderModel::SplitPass::norm_again(train::ParameterSet::Id weight, Id x, Id rstd,
                                                                     const Tensor& y) {
  Tickets gathering(rows_.chunks().size(), 0);
  if (config().checkpointing) return gathering;
  for (std::size_t i = 0; i < rows_.own_ranges().size(); ++i) {
    const RowRange& rows = rows_.own_ranges()[i];
    norm(weight, buffer(x), buffer(rstd), y, rows);
    gathering[i] = start_gathering(y, rows);
  }
  return gathering;
}

// Goes back through a norm when the sums of the gradient by its output have come, and gathers for the ranks' products.
void DecoderModel::SplitPass::norm_backward(train::ParameterSet::Id weight, const Tensor& dnormed, Id x, Id rstd,
                                            const Tensor& residual, bool is_read_by_products) {
  if (!gathers()) wait(tickets_, dnormed);
  for (std::size_t i = 0; i < rows_.own_ranges().size(); ++i) {
    const RowRange& rows = rows_.own_ranges()[i];
    if (gathers()) m_.wait(b_, tickets_[i], rows_.of(dnormed, rows));
    const Tensor dx = rows_.own(buffer(m_.dx_), rows);
    b_.run(op::RmsNormBackward{.dy = rows_.own(dnormed, rows),
                               .x = rows_.kept(buffer(x), rows),
                               .weight = m_.set_.value(weight),
                               .rstd = rows_.kept(buffer(rstd), rows),
                               .residual = residual ? dx : Tensor(),
                               .dx = dx,
                               .dweight = m_.set_.gradient(weight),
                               .accumulate = i > 0});
    tickets_[i] = is_read_by_products ? start_gathering(buffer(m_.dx_), rows) : 0;
  }
}

// Norms, whose gradients are this rank's terms of a sum, lie behind everything else.
void DecoderModel::SplitPass::backward(const Tensor& ids, const Tensor& labels, std::int64_t valid_rows,
                                       train::GradientListener* listener) {
  const Tensor &dlogits = buffer(m_.logits_), &dfinal = buffer(m_.dfinal_);
  const bool is_made = m_.makes_loss_in_chunks();  // then forward has made all this
  if (!is_made) logits_backward(labels, valid_rows, 0);
  for (std::size_t i = 0; i < rows_.chunks().size(); ++i) {
    const RowRange& rows = rows_.chunks()[i];
    if (!is_made) m_.project_back(b_, rows_.of(dlogits, rows), m_.ids_.lm_head, 1, {}, rows_.of(dfinal, rows));
    tickets_[i] = start_summing(dfinal, rows);
  }
  if (!is_made) m_.weight_gradient(b_, dlogits, buffer(m_.final_normed_), m_.ids_.lm_head);
  m_.tell(listener, m_.ids_.lm_head + 1);
  norm_backward(m_.ids_.ln_final, dfinal, m_.final_input_, m_.final_rstd_, {}, config().layers > 0);
  for (std::int64_t l = config().layers - 1; l >= 0; --l) {
    layer_backward(l);
    m_.tell(listener, l > 0 ? m_.layer_ids(l - 1).w2 : m_.ids_.embeddings);
  }
  embedding_backward(ids);
  m_.tell(listener, m_.set_.all().size());
}

// Begins with the gradient by the layer's end on its way to all rows, and ends with that by its beginning on it.
void DecoderModel::SplitPass::layer_backward(std::int64_t layer) {
  const DecoderLayerParameters& p = m_.layer_ids(layer);
  const Forward& f = m_.recomputed_[index_of(layer)];
  const Backward& g = m_.backward_[index_of(layer)];
  const GateUp gu = m_.gate_up(f);
  const Tensor &dx = buffer(m_.dx_), &dqkv = buffer(g.dqkv), &dhidden = buffer(g.dhidden);
  const Tensor& normed2 = buffer(config().checkpointing ? f.normed2 : g.normed2);
  const Tensor& normed1 = buffer(config().checkpointing ? f.normed1 : g.normed1);
  const auto& chunks = rows_.chunks();
  if (config().checkpointing) SplitPass(m_, b_).make_again(layer, f);

  Tickets gathering;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const RowRange& rows = chunks[i];
    m_.wait(b_, tickets_[i], rows_.of(dx, rows));
    if (i == 0) gathering = norm_again(p.ln2, f.middle, f.rstd2, normed2);
    m_.project_back(b_, rows_.of(dx, rows), p.w2, 1, {}, rows_.of(dhidden, rows));
    const Tensor gate = rows_.of(gu.gate, rows), up = rows_.of(gu.up, rows);
    b_.run(op::SwigluBackward{.gate = gate,
                              .up = up,
                              .dh = rows_.of(dhidden, rows),
                              .dgate = gate,
                              .dup = up,
                              .h = rows_.of(buffer(g.hidden), rows)});
    m_.project_back(b_, rows_.of(gu.packed, rows), p.w1, 2, {}, rows_.of(buffer(g.dnormed2), rows));
    tickets_[i] = start_summing(buffer(g.dnormed2), rows);
  }
  m_.weight_gradient(b_, dx, buffer(g.hidden), p.w2);
  if (!gathers()) m_.weight_gradient(b_, gu.packed, normed2, p.w1, 2);
  norm_backward(p.ln2, buffer(g.dnormed2), f.middle, f.rstd2, dx, true);
  if (gathers()) {
    wait(gathering, normed2);
    m_.weight_gradient(b_, gu.packed, normed2, p.w1, 2);
  }

  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const RowRange& rows = chunks[i];
    m_.wait(b_, tickets_[i], rows_.of(dx, rows));
    if (i == 0) gathering = norm_again(p.ln1, f.input, f.rstd1, normed1);
    m_.project_back(b_, rows_.of(dx, rows), p.output, 1, {}, rows_.of(buffer(g.dattention), rows));
  }
  m_.attention_backward(b_, layer, f, g);
  m_.turn_heads_back(b_, layer, f, g);
  if (config().qkv_bias) b_.run(op::BiasBackward{.dy = dqkv, .dbias = m_.set_.gradient(p.q_bias, 3)});
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const RowRange& rows = chunks[i];
    m_.project_back(b_, rows_.of(dqkv, rows), p.q, 3, {}, rows_.of(buffer(g.dnormed1), rows));
    tickets_[i] = start_summing(buffer(g.dnormed1), rows);
  }
  m_.weight_gradient(b_, dx, buffer(f.attention), p.output);
  if (!gathers()) m_.weight_gradient(b_, dqkv, normed1, p.q, 3);
  norm_backward(p.ln1, buffer(g.dnormed1), f.input, f.rstd1, dx, layer > 0);
  if (gathers()) {
    wait(gathering, normed1);
    m_.weight_gradient(b_, dqkv, normed1, p.q, 3);
  }
}

}  // namespace assay::models
