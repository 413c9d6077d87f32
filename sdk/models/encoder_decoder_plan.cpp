// The encoder-decoder's temporary tensors: every one that some form of the step makes. Those that this one does not use
// take no memory. When each is alive follows from the step.
#include <assay/train/step_recording.hpp>

#include <algorithm>

#include <assay/train/unbound_memory.hpp>
#include "assay/models/encoder_decoder.hpp"

namespace assay::models {

using compute::DType;
using compute::Tensor;
using Use = train::BufferPlan::Use;

namespace {

// Beyond the streams that parameters and data draw from.
constexpr std::uint64_t first_dropout_stream = 2'000'000;

}  // namespace

EncoderDecoderModel::EncoderDecoderModel(const EncoderDecoderConfig& config, const train::ParameterSet& set,
                                         const EncoderDecoderParameters& ids)
    : config_(config), set_(set), ids_(ids), next_stream_(first_dropout_stream) {
  config_.validate();
  const std::int64_t rows = config_.rows(), source = config_.source_rows(), target = config_.target_rows();
  tokens_ = plan_rows("embeddings.tokens", rows, config_.d_model);
  embedded_ = plan_rows("embeddings", rows, config_.d_model);
  for (std::size_t l = 0; l < ids_.encoder.size(); ++l) {
    const std::string name = "encoder.layers." + std::to_string(l);
    EncoderLayer& layer = encoder_.emplace_back();
    layer.self = plan_attention(name + ".self", ids_.encoder[l].self_attention, false, false);
    layer.feed_forward = plan_feed_forward(name + ".feed_forward", ids_.encoder[l].feed_forward, source);
  }
  encoder_norm_ = plan_norm("encoder.norm", ids_.encoder_norm, source);
  for (std::size_t l = 0; l < ids_.decoder.size(); ++l) {
    const std::string name = "decoder.layers." + std::to_string(l);
    DecoderLayer& layer = decoder_.emplace_back();
    layer.self = plan_attention(name + ".self", ids_.decoder[l].self_attention, false, true);
    layer.cross = plan_attention(name + ".cross", ids_.decoder[l].cross_attention, true, false);
    layer.feed_forward = plan_feed_forward(name + ".feed_forward", ids_.decoder[l].feed_forward, target);
  }
  decoder_norm_ = plan_norm("decoder.norm", ids_.decoder_norm, target);
  plan_head();
  dstate_ = plan_rows("state.gradient", rows, config_.d_model);

  const Tensor batch(train::unbound_place(train::UnboundMemory::inputs, 0), DType::i64, {config_.batch_elements()});
  train::plan_step(plan_, config_.backward ? &set_ : nullptr, [&](compute::Backend& recorder) {
    forward_of(recorder, batch);
    if (config_.backward) backward(recorder, batch);
  });
}

EncoderDecoderModel::Id EncoderDecoderModel::plan_rows(const std::string& name, std::int64_t rows,
                                                       std::int64_t columns) {
  return plan_.add(name, config_.precision.activation, {rows, columns});
}

EncoderDecoderModel::Id EncoderDecoderModel::plan_numbers(const std::string& name, std::int64_t rows) {
  return plan_.add(name, DType::f32, {rows});
}

void EncoderDecoderModel::plan_head() {
  const std::int64_t rows = config_.target_rows(), vocab = config_.vocab_size;
  const DType act = config_.precision.activation;
  // Without a backward the logits are the result.
  logits_ = plan_.add("logits", act, {rows, vocab}, config_.backward ? Use::temporary : Use::result);
  raw_logits_ = plan_rows("logits.raw", rows, vocab);
  kept_logits_ = config_.keep_logits ? plan_.add("logits.kept", act, {rows, vocab}, Use::result) : logits_;
  losses_ = plan_numbers("losses", rows);
  lse_ = plan_numbers("losses.lse", rows);
  loss_ = plan_.add("loss", DType::f32, {1}, Use::result);
}

EncoderDecoderModel::Attention EncoderDecoderModel::plan_attention(const std::string& name, const BlockParameters& p,
                                                                   bool cross, bool causal) {
  const std::int64_t d = config_.d_model, batch = config_.batch_size;
  Attention block{};
  block.p = p, block.cross = cross, block.causal = causal;
  block.queries = causal || cross ? config_.target_length() : config_.sequence_length;
  block.keys = cross ? config_.sequence_length : block.queries;
  block.stream = next_stream_++;
  const std::int64_t rows = batch * block.queries, key_rows = batch * block.keys;
  const std::int64_t width = cross ? d : 3 * d;
  block.q = plan_rows(name + ".q", rows, width);
  block.kv = plan_rows(name + ".kv", key_rows, 2 * d);
  block.raw_q = plan_rows(name + ".q.raw", rows, width);
  block.raw_kv = plan_rows(name + ".kv.raw", key_rows, 2 * d);
  block.attention = plan_rows(name + ".attention", rows, d);
  block.lse = plan_.add(name + ".lse", DType::f32, {batch, config_.heads, block.queries});
  const auto scores = [&](const char* what) {
    const std::int64_t at_once = makes_scores_in_parts() ? std::min(config_.score_rows, block.queries) : block.queries;
    return plan_.add(name + what, config_.precision.activation, {batch, config_.heads, at_once, block.keys});
  };
  block.scores = scores(".scores");
  block.dropped_scores = drops() ? scores(".scores.dropped") : block.scores;
  block.backward_scores = scores(".backward.probabilities");
  block.dscores = scores(".backward.scores");
  block.ddropped_scores = drops() ? scores(".backward.scores.dropped") : block.dscores;
  block.dattention = plan_rows(name + ".backward.attention", rows, d);
  block.dq = plan_rows(name + ".backward.q", rows, width);
  block.dkv = plan_rows(name + ".backward.kv", key_rows, 2 * d);
  block.end = plan_end(name, rows);
  return block;
}

EncoderDecoderModel::FeedForward EncoderDecoderModel::plan_feed_forward(const std::string& name,
                                                                        const BlockParameters& p, std::int64_t rows) {
  const std::int64_t ff = config_.d_ff;
  FeedForward block{};
  block.p = p;
  block.stream = next_stream_++;
  block.hidden = plan_rows(name + ".hidden", rows, ff);
  block.raw = plan_rows(name + ".raw", rows, ff);
  block.biased = plan_rows(name + ".biased", rows, ff);
  block.activated = drops() ? plan_rows(name + ".activated", rows, ff) : block.hidden;
  block.dhidden = block.dactivated = plan_rows(name + ".backward.hidden", rows, ff);
  if (!config_.fused && drops()) block.dactivated = plan_rows(name + ".backward.activated", rows, ff);
  block.end = plan_end(name, rows);
  return block;
}

EncoderDecoderModel::BlockEnd EncoderDecoderModel::plan_end(const std::string& name, std::int64_t rows) {
  const std::int64_t d = config_.d_model;
  BlockEnd end{};
  end.stream = next_stream_++;
  end.sum = plan_rows(name + ".sum", rows, d);
  end.branch = config_.fused ? end.sum : plan_rows(name + ".branch", rows, d);  // fused: the sum is made in its place
  end.biased = plan_rows(name + ".branch.biased", rows, d);
  end.dropped = drops() ? plan_rows(name + ".branch.dropped", rows, d) : end.biased;
  end.y = plan_rows(name + ".result", rows, d);
  end.mean = plan_numbers(name + ".mean", rows);
  end.rstd = plan_numbers(name + ".rstd", rows);
  end.dbranch = plan_rows(name + ".backward.branch", rows, d);
  return end;
}

EncoderDecoderModel::Norm EncoderDecoderModel::plan_norm(const std::string& name, train::ParameterSet::Id weight,
                                                         std::int64_t rows) {
  Norm norm{};
  norm.weight = weight;
  norm.y = plan_rows(name + ".result", rows, config_.d_model);
  norm.mean = plan_numbers(name + ".mean", rows);
  norm.rstd = plan_numbers(name + ".rstd", rows);
  return norm;
}

}  // namespace assay::models
