// The encoder-decoder's shape: parameters and work.
#include <cmath>
#include <string>

#include "assay/models/encoder_decoder.hpp"

namespace assay::models {
namespace {

using Id = train::ParameterSet::Id;

void require(bool holds, const std::string& text) {
  if (!holds) throw Error(ASSAY_INVALID_ARGUMENT, text);
}

// Adds a model's parameters block by block, under PyTorch's names.
class Builder {
 public:
  Builder(train::ParameterSet& set, const EncoderDecoderConfig& config) : set_(set), config_(config) {}

  Id matrix(const std::string& name, std::int64_t out, std::int64_t in, float std) {
    return set_.add({train::Parameter{name, {out, in}, 0, 0.0F, std}});
  }
  Id vector(const std::string& name, std::int64_t elements, float mean, float std) {
    return set_.add({train::Parameter{name, {elements}, 0, mean, std}});
  }
  Id norm(const std::string& name) {
    const Id weight = vector(name + ".weight", config_.d_model, 1.0F, 0.0F);
    vector(name + ".bias", config_.d_model, 0.0F, 0.0F);
    return weight;
  }
  BlockParameters attention(const std::string& name, const std::string& norm_name) {
    const std::int64_t d = config_.d_model;
    BlockParameters p{};
    p.norm_weight = norm(norm_name);
    p.norm_bias = p.norm_weight + 1;
    p.out_bias = vector(name + ".out_proj.bias", d, 0.0F, 0.0F);
    p.out_weight = matrix(name + ".out_proj.weight", d, d, xavier(d, d));
    p.in_weight = matrix(name + ".in_proj_weight", 3 * d, d, xavier(3 * d, d));
    p.in_bias = vector(name + ".in_proj_bias", 3 * d, 0.0F, 0.0F);
    return p;
  }
  BlockParameters feed_forward(const std::string& layer, const std::string& norm_name) {
    const std::int64_t d = config_.d_model, ff = config_.d_ff;
    BlockParameters p{};
    p.norm_weight = norm(norm_name);
    p.norm_bias = p.norm_weight + 1;
    p.out_bias = vector(layer + ".linear2.bias", d, 0.0F, of_fan_in(ff));
    p.out_weight = matrix(layer + ".linear2.weight", d, ff, xavier(d, ff));
    p.in_weight = matrix(layer + ".linear1.weight", ff, d, xavier(ff, d));
    p.in_bias = vector(layer + ".linear1.bias", ff, 0.0F, of_fan_in(d));
    return p;
  }
  // Standard deviations of xavier_uniform_, and of the uniform distribution within 1 / sqrt(in) of 0.
  static float xavier(std::int64_t out, std::int64_t in) { return std::sqrt(2.0F / static_cast<float>(in + out)); }
  static float of_fan_in(std::int64_t in) { return 1.0F / std::sqrt(3.0F * static_cast<float>(in)); }

 private:
  train::ParameterSet& set_;
  const EncoderDecoderConfig& config_;
};

}  // namespace

void EncoderDecoderConfig::validate() const {
  require(heads > 0 && d_model > 0 && d_model % heads == 0,
          "d_model " + std::to_string(d_model) + " is not a multiple of heads " + std::to_string(heads));
  require(sequence_length >= 2, "the sequence length " + std::to_string(sequence_length) +
                                    " leaves nothing to predict; at least 2: input and label are the target without "
                                    "its last and without its first token");
  require(encoder_layers >= 1 && decoder_layers >= 1, "an encoder of " + std::to_string(encoder_layers) +
                                                          " and a decoder of " + std::to_string(decoder_layers) +
                                                          " layers; expected at least 1 of each");
  require(dropout >= 0.0F && dropout < 1.0F,
          "dropout " + std::to_string(dropout) + " is not a probability below 1; 0 drops nothing");
  require(score_rows == 0 || dropout == 0.0F, "scores in parts know no dropout; set score_rows or dropout to 0");
}

EncoderDecoderParameters add_encoder_decoder_parameters(train::ParameterSet& set, const EncoderDecoderConfig& c) {
  Builder add(set, c);
  EncoderDecoderParameters ids{};
  const float head = Builder::of_fan_in(c.d_model);
  ids.head_weight = add.matrix("out.weight", c.vocab_size, c.d_model, head);
  ids.head_bias = add.vector("out.bias", c.vocab_size, 0.0F, head);
  ids.decoder_norm = add.norm("core.decoder.norm");
  ids.decoder.resize(static_cast<std::size_t>(c.decoder_layers));
  for (std::size_t l = ids.decoder.size(); l-- > 0;) {
    const std::string layer = "core.decoder.layers." + std::to_string(l);
    ids.decoder[l].feed_forward = add.feed_forward(layer, layer + ".norm3");
    ids.decoder[l].cross_attention = add.attention(layer + ".multihead_attn", layer + ".norm2");
    ids.decoder[l].self_attention = add.attention(layer + ".self_attn", layer + ".norm1");
  }
  ids.encoder_norm = add.norm("core.encoder.norm");
  ids.encoder.resize(static_cast<std::size_t>(c.encoder_layers));
  for (std::size_t l = ids.encoder.size(); l-- > 0;) {
    const std::string layer = "core.encoder.layers." + std::to_string(l);
    ids.encoder[l].feed_forward = add.feed_forward(layer, layer + ".norm2");
    ids.encoder[l].self_attention = add.attention(layer + ".self_attn", layer + ".norm1");
  }
  ids.positions = add.matrix("pos.weight", c.sequence_length, c.d_model, 1.0F);
  ids.embedding = add.matrix("emb.weight", c.vocab_size, c.d_model, 1.0F);
  return ids;
}

std::uint64_t encoder_decoder_forward_flops(const EncoderDecoderConfig& c) {
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t d = u(c.d_model), ff = u(c.d_ff), source = u(c.source_rows()), target = u(c.target_rows());
  const std::uint64_t encoder = u(c.encoder_layers), decoder = u(c.decoder_layers);
  // Of an encoder layer: 3 d^2 of queries, keys and values, d^2 of the output, 2 d ff. Of a decoder layer the same, and
  // 2 d^2 of the cross attention's queries and output; its keys and values are made of the source's rows.
  const std::uint64_t products =
      2 * (encoder * source * (4 * d * d + 2 * d * ff) + decoder * target * (6 * d * d + 2 * d * ff) +
           decoder * source * 2 * d * d + target * d * u(c.vocab_size));
  // Two products of [Tq, D] x [D, Tk] for each head: 4 Tq Tk d for a sequence, or half of it.
  const std::uint64_t attention = 4 * encoder * source * u(c.sequence_length) * d +
                                  2 * decoder * target * u(c.target_length()) * d +
                                  4 * decoder * target * u(c.sequence_length) * d;
  return products + attention;
}

}  // namespace assay::models
