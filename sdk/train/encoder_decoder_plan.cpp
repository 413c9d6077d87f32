// The plan of the encoder-decoder's temporary tensors.
//
// Moments of a step. Forward: embeddings; per block: attention 0 projections, 1 attention, 2 output projection and end;
// feed-forward 0 hidden state, 1 output and end; each norm one; the head with the loss. Backward: the head; per block:
// 0 its end, 1 output projection, then attention 2 attention, 3 projections, feed-forward 2 hidden state; each norm
// one; the embeddings. A block's input is read as its residual until its forward ends, and until its backward ends.
#include <algorithm>

#include "assay/train/encoder_decoder.hpp"

namespace assay::train {

using compute::DType;

namespace {

constexpr int attention_forward = 3, feed_forward_forward = 2;
constexpr int attention_backward = 4, feed_forward_backward = 3;
constexpr int encoder_forward = attention_forward + feed_forward_forward;
constexpr int decoder_forward = 2 * attention_forward + feed_forward_forward;
constexpr int encoder_backward = feed_forward_backward + attention_backward;
constexpr int decoder_backward = feed_forward_backward + 2 * attention_backward;

// Beyond the streams that parameters and data draw from.
constexpr std::uint64_t first_dropout_stream = 2'000'000;

}  // namespace

struct EncoderDecoderModel::Timeline {
  int encoder_layers, decoder_layers;
  int encoder(int l) const { return 1 + encoder_forward * l; }
  int decoder(int l) const { return encoder(encoder_layers) + 1 + decoder_forward * l; }
  int head() const { return decoder(decoder_layers) + 1; }
  int decoder_back(int l) const { return head() + 3 + decoder_backward * (decoder_layers - 1 - l); }
  int encoder_back(int l) const { return decoder_back(-1) + 1 + encoder_backward * (encoder_layers - 1 - l); }
  int embeddings_back() const { return encoder_back(-1); }

  Times encoder_norm() const { return {encoder(encoder_layers), decoder_back(-1)}; }
  Times decoder_norm() const { return {decoder(decoder_layers), head() + 2}; }
  Times encoder_self(int l) const { return {encoder(l), encoder_back(l) + feed_forward_backward}; }
  Times encoder_feed_forward(int l) const { return {encoder(l) + attention_forward, encoder_back(l)}; }
  Times decoder_self(int l) const { return {decoder(l), decoder_back(l) + feed_forward_backward + attention_backward}; }
  Times decoder_cross(int l) const { return {decoder(l) + attention_forward, decoder_back(l) + feed_forward_backward}; }
  Times decoder_feed_forward(int l) const { return {decoder(l) + 2 * attention_forward, decoder_back(l)}; }
};

EncoderDecoderModel::EncoderDecoderModel(const EncoderDecoderConfig& config, const ParameterSet& set,
                                         const EncoderDecoderParameters& ids)
    : config_(config), set_(set), ids_(ids), next_stream_(first_dropout_stream) {
  config_.validate();
  const Timeline at{static_cast<int>(config_.encoder_layers), static_cast<int>(config_.decoder_layers)};
  const DType act = config_.precision.activation;
  const std::int64_t rows = config_.rows(), d = config_.d_model;
  last_moment_ = until(at.head(), at.embeddings_back());
  if (config_.backward) borrow_gradients();
  tokens_ = plan_.add("embeddings.tokens", act, {rows, d}, 0, 0);
  embedded_ = plan_.add("embeddings", act, {rows, d}, 0,
                        until(at.decoder_self(0).forward + attention_forward - 1, at.embeddings_back() - 1));
  plan_encoder(at);
  plan_decoder(at);
  plan_head(at);
  if (config_.backward) {
    dstate_ = plan_.add("state.gradient", act, {rows, d}, at.head() + 1, last_moment_);
    reserve_gradients(ids_.positions, 1, last_moment_);
    reserve_gradients(ids_.embedding, 1, last_moment_);
  }
  plan_.solve();
}

void EncoderDecoderModel::plan_encoder(const Timeline& at) {
  const std::int64_t rows = config_.source_rows();
  encoder_.resize(ids_.encoder.size());
  for (int l = 0; l < at.encoder_layers; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const std::string name = "encoder.layers." + std::to_string(l);
    const Times self = at.encoder_self(l), feed_forward = at.encoder_feed_forward(l);
    encoder_[i].self = plan_attention(name + ".self", ids_.encoder[i].self_attention, false, false, self,
                                      until(feed_forward.forward + 1, feed_forward.backward + 2));
    const bool last = l + 1 == at.encoder_layers;
    const Times next = last ? at.encoder_norm() : at.encoder_self(l + 1);
    encoder_[i].feed_forward =
        plan_feed_forward(name + ".feed_forward", ids_.encoder[i].feed_forward, rows, feed_forward,
                          last ? until(next.forward, next.backward) : until(next.forward + 2, next.backward + 3));
  }
  // Layer 0 is the last one to need the encoder's result in backward.
  const Times cross = {at.decoder_cross(at.decoder_layers - 1).forward, at.decoder_cross(0).backward};
  encoder_norm_ =
      plan_norm("encoder.norm", ids_.encoder_norm, rows, at.encoder_norm(), until(cross.forward, cross.backward + 3));
}

void EncoderDecoderModel::plan_decoder(const Timeline& at) {
  const std::int64_t rows = config_.target_rows();
  decoder_.resize(ids_.decoder.size());
  for (int l = 0; l < at.decoder_layers; ++l) {
    const auto i = static_cast<std::size_t>(l);
    const std::string name = "decoder.layers." + std::to_string(l);
    const Times self = at.decoder_self(l), cross = at.decoder_cross(l), feed_forward = at.decoder_feed_forward(l);
    decoder_[i].self = plan_attention(name + ".self", ids_.decoder[i].self_attention, false, true, self,
                                      until(cross.forward + 2, cross.backward + 3));
    decoder_[i].cross = plan_attention(name + ".cross", ids_.decoder[i].cross_attention, true, false, cross,
                                       until(feed_forward.forward + 1, feed_forward.backward + 2));
    const bool last = l + 1 == at.decoder_layers;
    const Times next = last ? at.decoder_norm() : at.decoder_self(l + 1);
    decoder_[i].feed_forward =
        plan_feed_forward(name + ".feed_forward", ids_.decoder[i].feed_forward, rows, feed_forward,
                          last ? until(next.forward, next.backward) : until(next.forward + 2, next.backward + 3));
  }
  decoder_norm_ =
      plan_norm("decoder.norm", ids_.decoder_norm, rows, at.decoder_norm(), until(at.head(), at.head() + 1));
}

void EncoderDecoderModel::plan_head(const Timeline& at) {
  const std::int64_t rows = config_.target_rows(), vocab = config_.vocab_size;
  const DType act = config_.precision.activation;
  const int end = until(last_moment_, at.head() + 1);  // without a backward the logits are a result, and stay
  logits_ = raw_logits_ = plan_.add("logits", act, {rows, vocab}, at.head(), end);
  if (!config_.fused) raw_logits_ = plan_.add("logits.raw", act, {rows, vocab}, at.head(), at.head());
  kept_logits_ = config_.keep_logits ? plan_.add("logits.kept", act, {rows, vocab}, 0, last_moment_) : logits_;
  losses_ = plan_.add("losses", DType::f32, {rows}, at.head(), end);
  lse_ = plan_.add("losses.lse", DType::f32, {rows}, at.head(), end);
  loss_ = plan_.add("loss", DType::f32, {1}, 0, last_moment_);
  reserve_gradients(ids_.head_weight, 2, at.head() + 1);
}

EncoderDecoderModel::Attention EncoderDecoderModel::plan_attention(const std::string& name, const BlockParameters& p,
                                                                   bool cross, bool causal, const Times& at,
                                                                   int end_of_y) {
  const std::int64_t d = config_.d_model, batch = config_.batch_size;
  const DType act = config_.precision.activation;
  const int f = at.forward, g = at.backward;
  Attention block{};
  block.p = p, block.cross = cross, block.causal = causal;
  block.queries = causal || cross ? config_.target_length() : config_.sequence_length;
  block.keys = cross ? config_.sequence_length : block.queries;
  block.stream = next_stream_++;
  const std::int64_t rows = batch * block.queries, key_rows = batch * block.keys;
  const std::int64_t width = cross ? d : 3 * d;
  block.q = plan_.add(name + ".q", act, {rows, width}, f, until(f + 1, g + 2));
  if (cross) block.kv = plan_.add(name + ".kv", act, {key_rows, 2 * d}, f, until(f + 1, g + 2));
  if (!config_.fused) {
    block.raw_q = plan_.add(name + ".q.raw", act, {rows, width}, f, f);
    if (cross) block.raw_kv = plan_.add(name + ".kv.raw", act, {key_rows, 2 * d}, f, f);
  }
  block.attention = plan_.add(name + ".attention", act, {rows, d}, f + 1, until(f + 2, g + 2));
  if (config_.flash)
    block.lse = plan_.add(name + ".lse", DType::f32, {batch, config_.heads, block.queries}, f + 1, until(f + 1, g + 2));
  else
    plan_scores(name, block, at);
  if (config_.backward) {
    block.dattention = plan_.add(name + ".backward.attention", act, {rows, d}, g + 1, g + 2);
    block.dq = plan_.add(name + ".backward.q", act, {rows, width}, g + 2, g + 3);
    if (cross) block.dkv = plan_.add(name + ".backward.kv", act, {key_rows, 2 * d}, g + 2, g + 3);
  }
  block.end = plan_end(name, p, rows, {f + 2, g}, end_of_y);
  reserve_gradients(p.in_weight, 2, g + 3);
  return block;
}

void EncoderDecoderModel::plan_scores(const std::string& name, Attention& block, const Times& at) {
  const DType act = config_.precision.activation;
  const std::int64_t batch = config_.batch_size, heads = config_.heads;
  const bool in_parts = makes_scores_in_parts();
  const std::int64_t rows = in_parts ? std::min(config_.score_rows, block.queries) : block.queries;
  const auto add = [&](const char* what, int first, int last) {
    return plan_.add(name + what, act, {batch, heads, rows, block.keys}, first, last);
  };
  block.scores = add(".scores", at.forward + 1, in_parts ? at.forward + 1 : until(at.forward + 1, at.backward + 2));
  block.dropped_scores = drops() ? add(".scores.dropped", at.forward + 1, at.forward + 1) : block.scores;
  if (!config_.backward) return;
  if (in_parts) block.backward_scores = add(".backward.probabilities", at.backward + 2, at.backward + 2);
  block.dscores = add(".backward.scores", at.backward + 2, at.backward + 2);
  block.ddropped_scores = drops() ? add(".backward.scores.dropped", at.backward + 2, at.backward + 2) : block.dscores;
}

EncoderDecoderModel::FeedForward EncoderDecoderModel::plan_feed_forward(const std::string& name,
                                                                        const BlockParameters& p, std::int64_t rows,
                                                                        const Times& at, int end_of_y) {
  const std::int64_t ff = config_.d_ff;
  const DType act = config_.precision.activation;
  const int f = at.forward, g = at.backward;
  FeedForward block{};
  block.p = p;
  block.stream = next_stream_++;
  block.hidden = plan_.add(name + ".hidden", act, {rows, ff}, f, until(f + 1, g + 1));
  block.activated = block.hidden;
  if (!config_.fused) {
    block.raw = plan_.add(name + ".raw", act, {rows, ff}, f, f);
    block.biased = plan_.add(name + ".biased", act, {rows, ff}, f, f);
    if (drops()) block.activated = plan_.add(name + ".activated", act, {rows, ff}, f, until(f, g + 1));
  }
  if (config_.backward) {
    block.dhidden = block.dactivated = plan_.add(name + ".backward.hidden", act, {rows, ff}, g + 1, g + 2);
    if (!config_.fused && drops())
      block.dactivated = plan_.add(name + ".backward.activated", act, {rows, ff}, g + 1, g + 2);
  }
  block.end = plan_end(name, p, rows, {f + 1, g}, end_of_y);
  reserve_gradients(p.in_weight, 2, g + 2);
  return block;
}

EncoderDecoderModel::BlockEnd EncoderDecoderModel::plan_end(const std::string& name, const BlockParameters& p,
                                                            std::int64_t rows, const Times& at, int end_of_y) {
  const std::int64_t d = config_.d_model;
  const DType act = config_.precision.activation;
  const int f = at.forward, g = at.backward;
  BlockEnd end{};
  end.stream = next_stream_++;
  end.sum = plan_.add(name + ".sum", act, {rows, d}, f, until(f, g));
  end.branch = end.sum;  // fused: the sum is made in the branch's place
  if (!config_.fused) {
    end.branch = plan_.add(name + ".branch", act, {rows, d}, f, f);
    end.biased = plan_.add(name + ".branch.biased", act, {rows, d}, f, f);
    end.dropped = drops() ? plan_.add(name + ".branch.dropped", act, {rows, d}, f, f) : end.biased;
  }
  end.y = plan_.add(name + ".result", act, {rows, d}, f, end_of_y);
  end.mean = plan_.add(name + ".mean", DType::f32, {rows}, f, until(f, g));
  end.rstd = plan_.add(name + ".rstd", DType::f32, {rows}, f, until(f, g));
  if (config_.backward && drops()) end.dbranch = plan_.add(name + ".backward.branch", act, {rows, d}, g, g + 1);
  reserve_gradients(p.norm_weight, 3, g);
  reserve_gradients(p.out_weight, 1, g + 1);
  return end;
}

EncoderDecoderModel::Norm EncoderDecoderModel::plan_norm(const std::string& name, ParameterSet::Id weight,
                                                         std::int64_t rows, const Times& at, int end_of_y) {
  const int end = until(at.forward, at.backward);
  Norm norm{};
  norm.weight = weight;
  norm.y = plan_.add(name + ".result", config_.precision.activation, {rows, config_.d_model}, at.forward, end_of_y);
  norm.mean = plan_.add(name + ".mean", DType::f32, {rows}, at.forward, end);
  norm.rstd = plan_.add(name + ".rstd", DType::f32, {rows}, at.forward, end);
  reserve_gradients(weight, 2, at.backward);
  return norm;
}

// A gradient's place is free until the moment that writes it. The gaps between groups, where there are any, must keep
// their zeros: then the whole arena is taken from the start. Padding at the arena's end is not borrowed at all.
void EncoderDecoderModel::borrow_gradients() {
  const std::int64_t elements = set_.arena_elements() - set_.tail_elements();
  const std::size_t bytes = static_cast<std::size_t>(elements) * compute::size_of(config_.precision.gradient);
  plan_.borrow(bytes);
  borrows_ = elements == set_.parameter_count();
  if (!borrows_) plan_.reserve(0, bytes, 0, last_moment_);
}

void EncoderDecoderModel::reserve_gradients(ParameterSet::Id first, std::size_t count, int moment) {
  if (!borrows_) return;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < count; ++i) elements += set_.all()[first + i].elements();
  plan_.reserve(set_.gradient_offset_bytes(first),
                static_cast<std::size_t>(elements) * compute::size_of(config_.precision.gradient), moment,
                last_moment_);
}

}  // namespace assay::train
