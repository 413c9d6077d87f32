// The encoder-decoder's step: embeddings, the order of the blocks, the head and the loss.
#include "assay/models/encoder_decoder.hpp"

namespace assay::models {

namespace op = compute::op;

using compute::Backend;
using compute::Tensor;

void EncoderDecoderModel::forward(Backend& b, const Tensor& batch) const {
  if (drops() && !dropout_step_)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "an encoder-decoder with dropout has no step number to draw its masks from; call set_dropout_step with "
                "an int64 in device memory, or set dropout to 0");
  forward_of(b, batch);
}

void EncoderDecoderModel::forward_of(Backend& b, const Tensor& batch) const {
  forward_embeddings(b, batch);
  Tensor x = source(plan_[embedded_]);
  for (const EncoderLayer& layer : encoder_) {
    forward_attention(b, layer.self, x, {});
    forward_feed_forward(b, layer.feed_forward, plan_[layer.self.end.y]);
    x = plan_[layer.feed_forward.end.y];
  }
  forward_norm(b, encoder_norm_, x);
  const Tensor& memory = plan_[encoder_norm_.y];
  x = target(plan_[embedded_]);
  for (const DecoderLayer& layer : decoder_) {
    forward_attention(b, layer.self, x, {});
    forward_attention(b, layer.cross, plan_[layer.self.end.y], memory);
    forward_feed_forward(b, layer.feed_forward, plan_[layer.cross.end.y]);
    x = plan_[layer.feed_forward.end.y];
  }
  forward_norm(b, decoder_norm_, x);
  forward_head(b, labels(batch));
}

// The positions are a bias of whole sequences: [batch, length d] + [length d].
void EncoderDecoderModel::forward_embeddings(Backend& b, const Tensor& batch) const {
  const std::int64_t sequences = config_.batch_size, d = config_.d_model;
  const Tensor &tokens = plan_[tokens_], &embedded = plan_[embedded_];
  b.run(op::EmbeddingForward{.ids = ids(batch), .table = set_.compute(ids_.embedding), .out = tokens});
  const Tensor positions = set_.value(ids_.positions);
  const auto add = [&](const Tensor& x, std::int64_t length, const Tensor& y) {
    b.run(op::BiasAdd{.x = x.view({sequences, length * d}),
                      .bias = positions.slice(0, 0, length).view({length * d}),
                      .y = y.view({sequences, length * d})});
  };
  add(source(tokens), config_.sequence_length, source(embedded));
  add(target(tokens), config_.target_length(), target(embedded));
}

void EncoderDecoderModel::forward_head(Backend& b, const Tensor& labels) const {
  const Tensor& logits = plan_[logits_];
  linear(b, plan_[decoder_norm_.y], set_.compute(ids_.head_weight), set_.compute(ids_.head_bias), raw_logits_, logits);
  if (config_.keep_logits) b.run(op::Copy{.to = plan_[kept_logits_], .from = logits});
  if (config_.fused && config_.backward)
    b.run(op::CrossEntropyInPlace{.logits = logits,
                                  .labels = labels,
                                  .losses = plan_[losses_],
                                  .scale = loss_factor(),
                                  .loss_scale = loss_scale_});
  else
    b.run(op::CrossEntropyForward{.logits = logits, .labels = labels, .losses = plan_[losses_], .lse = plan_[lse_]});
  b.run(op::Sum{.x = plan_[losses_], .out = plan_[loss_], .factor = loss_factor()});
}

void EncoderDecoderModel::backward(Backend& b, const Tensor& batch, train::GradientListener* listener) const {
  const Tensor dsource = source(plan_[dstate_]), dtarget = target(plan_[dstate_]);
  backward_head(b, labels(batch), dtarget, listener);
  backward_norm(b, decoder_norm_, plan_[decoder_.back().feed_forward.end.y], dtarget, listener);
  const Tensor& memory = plan_[encoder_norm_.y];
  for (std::size_t l = decoder_.size(); l-- > 0;) {
    const DecoderLayer& layer = decoder_[l];
    const Tensor x = l > 0 ? plan_[decoder_[l - 1].feed_forward.end.y] : target(plan_[embedded_]);
    backward_feed_forward(b, layer.feed_forward, plan_[layer.cross.end.y], dtarget, listener);
    const bool first = l + 1 == decoder_.size();  // of the layers whose share in dsource is known
    backward_attention(b, layer.cross, plan_[layer.self.end.y], dtarget, memory, dsource, !first, listener);
    backward_attention(b, layer.self, x, dtarget, {}, {}, false, listener);
  }
  backward_norm(b, encoder_norm_, plan_[encoder_.back().feed_forward.end.y], dsource, listener);
  for (std::size_t l = encoder_.size(); l-- > 0;) {
    const EncoderLayer& layer = encoder_[l];
    const Tensor x = l > 0 ? plan_[encoder_[l - 1].feed_forward.end.y] : source(plan_[embedded_]);
    backward_feed_forward(b, layer.feed_forward, plan_[layer.self.end.y], dsource, listener);
    backward_attention(b, layer.self, x, dsource, {}, {}, false, listener);
  }
  backward_embeddings(b, batch, listener);
}

void EncoderDecoderModel::backward_head(Backend& b, const Tensor& labels, const Tensor& dx,
                                        train::GradientListener* listener) const {
  const Tensor& dlogits = plan_[logits_];
  if (!config_.fused)
    b.run(op::CrossEntropyBackward{.logits = dlogits,
                                   .labels = labels,
                                   .lse = plan_[lse_],
                                   .scale = loss_factor(),
                                   .loss_scale = loss_scale_,
                                   .dlogits = dlogits});
  b.run(
      op::Matmul{.a = dlogits, .b = plan_[decoder_norm_.y], .c = set_.gradient(ids_.head_weight), .transpose_a = true});
  b.run(op::BiasBackward{.dy = dlogits, .dbias = set_.gradient(ids_.head_bias)});
  tell(listener, ids_.head_bias + 1);
  b.run(op::Matmul{.a = dlogits, .b = set_.compute(ids_.head_weight), .c = dx});
}

// Source and target go through the shared table as one list of tokens. Positions add up over both: the source has one
// more, so that it comes first.
void EncoderDecoderModel::backward_embeddings(Backend& b, const Tensor& batch,
                                              train::GradientListener* listener) const {
  const std::int64_t sequences = config_.batch_size, d = config_.d_model;
  const Tensor& dx = plan_[dstate_];
  const Tensor dpositions = set_.gradient(ids_.positions);
  const auto add = [&](const Tensor& dy, std::int64_t length, bool accumulate) {
    b.run(op::BiasBackward{.dy = dy.view({sequences, length * d}),
                           .dbias = dpositions.slice(0, 0, length).view({length * d}),
                           .accumulate = accumulate});
  };
  add(source(dx), config_.sequence_length, false);
  add(target(dx), config_.target_length(), true);
  tell(listener, ids_.positions + 1);
  b.run(op::EmbeddingBackward{.ids = ids(batch), .dout = dx, .dtable = set_.gradient(ids_.embedding)});
  tell(listener, ids_.embedding + 1);
}

}  // namespace assay::models
