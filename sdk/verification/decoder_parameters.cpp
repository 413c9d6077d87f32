#include "decoder_parameters.hpp"

#include <algorithm>
#include <assay/verification/sampling.hpp>
#include <assay/workload/host_copies.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

namespace assay::verification {

using workload::number;

namespace {

// Of an expert's matrices each starts as it would by itself; gate and up are one above the other.
void add_experts(std::vector<DecoderParameter>& all, const std::string& prefix, const models::DecoderConfig& c) {
  const models::ExpertsConfig& e = c.experts;
  const std::int64_t width = c.d_model, ff = e.d_ff, shared = e.shared_d_ff;
  const auto add = [&](const char* name, std::vector<std::int64_t> dims, std::int64_t out_and_in) {
    all.push_back({prefix + name, std::move(dims), 0, std::sqrt(2 / static_cast<double>(out_and_in))});
  };
  const auto bias = [&](const char* name, std::vector<std::int64_t> dims) {
    if (e.biases) all.push_back({prefix + name, std::move(dims), 0, 0});
  };
  add("router.weight", {e.count, width}, e.count + width);
  bias("router.bias", {e.count});
  add("experts.w13.weight", {e.count, 2 * ff, width}, ff + width);
  bias("experts.w13.bias", {e.count, 2 * ff});
  add("experts.w2.weight", {e.count, width, ff}, ff + width);
  bias("experts.w2.bias", {e.count, width});
  if (shared == 0) return;
  add("shared.w1.weight", {shared, width}, shared + width);
  add("shared.w3.weight", {shared, width}, shared + width);
  add("shared.w2.weight", {width, shared}, shared + width);
}

}  // namespace

std::vector<DecoderParameter> decoder_parameters_of(const models::DecoderConfig& c) {
  const std::int64_t width = c.d_model, of_head = c.head_dim > 0 ? c.head_dim : c.d_model / c.heads;
  const std::int64_t queries = c.heads * of_head, keys = (c.kv_heads > 0 ? c.kv_heads : c.heads) * of_head;
  std::vector<DecoderParameter> all;
  const auto matrix = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    all.push_back({name + ".weight", {out, in}, 0, std::sqrt(2 / static_cast<double>(out + in))});
  };
  const auto bias = [&](const std::string& name, std::int64_t out) { all.push_back({name + ".bias", {out}, 0, 0}); };
  const auto norm = [&](const std::string& name, std::int64_t of) {
    all.push_back({name + ".weight", {of}, c.norms_from_one ? 0.0 : 1.0, 0, true});
  };
  matrix("token_embeddings", c.vocab_size, width);
  if (!c.tied_embeddings) {
    all.back().deviation = 1;
    matrix("lm_head", c.vocab_size, width);
  }
  norm("ln_final", width);
  for (std::int64_t l = 0; l < c.layers; ++l) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    norm(layer + "ln1", width);
    norm(layer + "ln2", width);
    if (c.post_norms) norm(layer + "post_attention_norm", width), norm(layer + "post_ffw_norm", width);
    if (c.qk_norm) norm(layer + "attn.q_norm", of_head), norm(layer + "attn.k_norm", of_head);
    if (const models::LatentAttention& a = c.latent; a.kv_lora_rank > 0) {
      const std::int64_t of_queries = c.heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
      matrix(layer + (a.q_lora_rank > 0 ? "attn.q_b_proj" : "attn.q_proj"), of_queries,
             a.q_lora_rank > 0 ? a.q_lora_rank : width);
      if (a.q_lora_rank > 0) matrix(layer + "attn.q_a_proj", a.q_lora_rank, width);
      if (a.q_lora_rank > 0) norm(layer + "attn.q_a_norm", a.q_lora_rank);
      matrix(layer + "attn.kv_a_proj", a.kv_lora_rank + a.qk_rope_head_dim, width);
      norm(layer + "attn.kv_a_norm", a.kv_lora_rank);
      matrix(layer + "attn.kv_b_proj", c.heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank);
      matrix(layer + "attn.output_proj", width, c.heads * a.v_head_dim);
    } else {
      matrix(layer + "attn.q_proj", queries, width);
      matrix(layer + "attn.k_proj", keys, width);
      matrix(layer + "attn.v_proj", keys, width);
      matrix(layer + "attn.output_proj", width, queries);
    }
    if (c.output_bias) bias(layer + "attn.output_proj", width);
    if (c.attention_sinks) all.push_back({layer + "attn.sinks", {c.heads}, 0, 0});
    if (c.qkv_bias) {
      bias(layer + "attn.q_proj", queries);
      bias(layer + "attn.k_proj", keys);
      bias(layer + "attn.v_proj", keys);
    }
    if (c.experts.any() && l >= c.experts.first_dense_layers) {
      add_experts(all, layer + "moe.", c);
      continue;
    }
    matrix(layer + "ffn.w1", c.d_ff, width);
    matrix(layer + "ffn.w3", c.d_ff, width);
    matrix(layer + "ffn.w2", width, c.d_ff);
  }
  return all;
}

train::ParameterSet::Id decoder_parameter(const train::ParameterSet& set, std::string_view name) {
  const auto found =
      std::find_if(set.all().begin(), set.all().end(), [&](const train::Parameter& p) { return p.name == name; });
  if (found == set.all().end())
    throw Error(ASSAY_WRONG_RESULT, "the model has no parameter '" + std::string(name) + "', which such a decoder has");
  return static_cast<train::ParameterSet::Id>(found - set.all().begin());
}

void check_decoder_parameters(const train::ParameterSet& set, const models::DecoderConfig& config) {
  constexpr double rounding = 1e-6;  // of a deviation in fp32: a root of a quotient
  const std::vector<DecoderParameter> expected = decoder_parameters_of(config);
  const auto text = [](const std::vector<std::int64_t>& dims) {
    std::string all;
    for (const std::int64_t d : dims) all += (all.empty() ? "[" : ", ") + std::to_string(d);
    return all + "]";
  };
  for (const DecoderParameter& e : expected) {
    const train::Parameter& p = set.all()[decoder_parameter(set, e.name)];
    if (p.dims != e.dims)
      throw Error(ASSAY_WRONG_RESULT, "the model's '" + e.name + "' has dimensions " + text(p.dims) +
                                          ", in such a decoder it has " + text(e.dims));
    if (double{p.init_mean} != e.mean || !(std::abs(double{p.init_std} - e.deviation) <= rounding * e.deviation))
      throw Error(ASSAY_WRONG_RESULT, "the model's '" + e.name + "' starts from mean " + number(double{p.init_mean}) +
                                          " and deviation " + number(double{p.init_std}, "%.9g") + ", expected " +
                                          number(e.mean) + " and " + number(e.deviation, "%.9g"));
  }
  if (set.all().size() != expected.size())
    throw Error(ASSAY_WRONG_RESULT, "the model has " + std::to_string(set.all().size()) +
                                        " parameters, such a decoder has " + std::to_string(expected.size()));
}

void check_drawn_parameters(compute::Backend& backend, const train::ParameterSet& set,
                            const models::DecoderConfig& config) {
  constexpr std::int64_t most = std::int64_t{1} << 16;
  // In deviations of a mean and of a variance over as many draws: a right one is further off in 2 of 10^9 cases. Of few
  // draws the variance is not normal, and not looked at.
  constexpr double allowed = 6, few = 256;
  // Rounding to 16 bits adds (2^-9)^2 / 3 to a relative variance at most.
  constexpr double rounding = 1e-5;
  for (const DecoderParameter& e : decoder_parameters_of(config)) {
    const std::vector<float> drawn = sample(backend, set.value(decoder_parameter(set, e.name)), most);
    const auto count = static_cast<double>(drawn.size());
    double sum = 0, squares = 0;
    for (const float x : drawn) sum += double{x} - e.mean;
    for (const float x : drawn) squares += (double{x} - e.mean) * (double{x} - e.mean);
    const double mean = sum / count, variance = squares / count, expected = e.deviation * e.deviation;
    const bool is_right = std::abs(mean) <= allowed * e.deviation / std::sqrt(count) &&
                          ((expected > 0 && count < few) ||
                           std::abs(variance - expected) <= expected * (allowed * std::sqrt(2 / count) + rounding));
    if (!is_right)
      throw Error(ASSAY_WRONG_RESULT, "the weights that '" + e.name + "' starts from have mean " +
                                          number(e.mean + mean) + " and deviation " + number(std::sqrt(variance)) +
                                          ", expected " + number(e.mean) + " and " + number(e.deviation));
  }
}

}  // namespace assay::verification
