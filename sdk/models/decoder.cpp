// The decoder's shape: parameters, work, and its temporary tensors.
#include "assay/models/decoder.hpp"

#include <algorithm>
#include <assay/train/step_recording.hpp>
#include <cmath>
#include <numeric>
#include <string>

#include <assay/models/decoder_pipeline.hpp>
#include <assay/train/unbound_memory.hpp>

#include "decoder_scores.hpp"

namespace assay::models {

using compute::DType;
using compute::Tensor;

namespace {

// The nearest below and above `count`; where `whole` is not 0, those that divide it.
std::string neighbouring_multiples(std::int64_t count, std::int64_t of, std::int64_t whole = 0) {
  const auto fits = [&](std::int64_t multiple) { return whole == 0 || whole % multiple == 0; };
  std::int64_t below = count / of * of, above = below + of;
  while (below > 0 && !fits(below)) below -= of;
  while (whole != 0 && above <= whole && !fits(above)) above += of;
  std::string text = below > 0 ? std::to_string(below) : "";
  if (whole == 0 || above <= whole) text += (text.empty() ? "" : " or ") + std::to_string(above);
  return text;
}

std::string divisors_of(std::int64_t count) {
  std::string text = "1";
  for (std::int64_t i = 2; i <= count; ++i)
    if (count % i == 0) text += (i < count ? ", " : " or ") + std::to_string(i);
  return text;
}

// Every rank must have as much as every other one, and the step be one that decoder_split_pass.hpp has.
void validate_split(const DecoderConfig& c) {
  const std::int64_t ranks = c.split.ranks;
  const auto refuse = [&](const std::string& text) {
    throw Error(ASSAY_UNSUPPORTED, "a decoder split over " + std::to_string(ranks) + " ranks: " + text);
  };
  std::int64_t parts = std::gcd(std::gcd(std::gcd(c.heads, c.key_heads()), c.d_model), std::gcd(c.d_ff, c.vocab_size));
  if (c.split.sequence_parallel) parts = std::gcd(parts, c.rows());
  const auto require_parts = [&](const char* name, std::int64_t count, std::int64_t whole = 0) {
    if (count % ranks == 0) return;
    const std::string others = neighbouring_multiples(count, ranks, whole);
    refuse(std::string(name) + " " + std::to_string(count) + " is not a multiple of " + std::to_string(ranks) +
           "; expected " + (others.empty() ? "" : others + ", or ") + "run.ranks / replicas of " + divisors_of(parts));
  };
  if (c.split.rank < 0 || c.split.rank >= ranks) refuse("there is no rank " + std::to_string(c.split.rank));
  require_parts("heads", c.heads, c.head_dim > 0 ? 0 : c.d_model);
  require_parts("kv_heads", c.key_heads());
  require_parts("d_model", c.d_model);
  require_parts("d_ff", c.d_ff);
  require_parts("vocab_size", c.vocab_size);
  if (c.split.sequence_parallel) require_parts("batch_size * context_length", c.rows());
  static_cast<void>(SplitRows(c));
  if (c.tied_embeddings)
    refuse(
        "the embedding is split by columns and the head by words, so that they cannot be one weight; expected "
        "tied_embeddings = false, which a size of a public model may set to true; fsdp serves it");
  if (c.output_bias) refuse("the product behind attention adds no bias; expected output_bias = false");
  if (!c.fused || !c.backward || c.keep_logits || c.keep_outputs || c.residual_in_products || c.side_lane ||
      c.precision.eight_bit_products || c.precision.loss_scaling)
    refuse(
        "expected a training step of fused operations, without a side lane, kept logits or outputs, residuals added in "
        "products, products of 8 bits or a loss scale");
}

// Every rank must have as many tokens and as much causal work as every other one.
void validate_context(const DecoderConfig& c) {
  const std::int64_t ranks = c.context.ranks;
  const auto refuse = [&](const std::string& text) {
    throw Error(ASSAY_UNSUPPORTED, "sequences shared out over " + std::to_string(ranks) + " ranks: " + text);
  };
  if (c.context.rank < 0 || c.context.rank >= ranks) refuse("there is no rank " + std::to_string(c.context.rank));
  if (c.context_length <= 0 || c.context_length % (2 * ranks) != 0)
    refuse("context_length " + std::to_string(c.context_length) +
           " does not make two chunks for each of them, as many tokens each; expected a multiple of " +
           std::to_string(2 * ranks) + ", " + neighbouring_multiples(c.context_length, 2 * ranks));
  if (c.is_split()) refuse("their products are whole; expected no split of the products over ranks");
  if (c.experts.any()) refuse("expected a model without experts");
  if (!c.flash)
    refuse(
        "a score matrix of all keys is what they are to do without; expected tiled attention, attention = \"flash\"");
  if (c.attention_sinks) refuse("expected attention_sinks = false");
  if (!c.documents.empty()) refuse("a token sees all before it in its sequence; expected document_tokens = 0");
  if (c.accumulation_steps > 1) refuse("a step has one micro-batch; expected accumulation_steps = 1");
  if (c.keep_logits || c.side_lane || c.precision.eight_bit_products || c.precision.loss_scaling)
    refuse("expected a step without a side lane, kept logits, products of 8 bits or a loss scale");
}

}  // namespace

void DecoderConfig::validate() const {
  const auto fail = [](const std::string& text) { throw Error(ASSAY_INVALID_ARGUMENT, text); };
  if (heads <= 0) fail("heads " + std::to_string(heads) + "; expected at least 1");
  validate_latent(*this);
  if (head_dim < 0) fail("head_dim " + std::to_string(head_dim) + "; expected at least 0");
  if (head_dim == 0 && !latent.any() && d_model % heads != 0)
    fail("d_model " + std::to_string(d_model) + " is not a multiple of heads " + std::to_string(heads));
  if (kv_heads < 0 || heads % key_heads() != 0)
    fail("heads " + std::to_string(heads) + " is not a multiple of kv_heads " + std::to_string(kv_heads));
  if (loss_chunks < 1 || accumulation_steps < 1)
    fail("loss_chunks " + std::to_string(loss_chunks) + " and accumulation_steps " +
         std::to_string(accumulation_steps) + "; expected at least 1");
  if (!backward && (loss_chunks > 1 || accumulation_steps > 1))
    fail(
        "loss_chunks and accumulation_steps are of steps with a backward, and a forward ends at all logits; leave them "
        "out, or add the backward");
  if (keep_logits && accumulation_steps > 1)
    fail("the logits of several micro-batches are not kept; set accumulation_steps = 1 to have them");
  if (output_bias && residual_in_products)
    fail("a product adds a bias or the residual stream; expected output_bias = false, or residual_add = \"norm\"");
  if (keep_outputs && checkpointing)
    fail("keep_outputs keeps what activation_checkpointing makes again; leave one of them out");
  if (!latent.any() && head_width() % 2 != 0)
    fail("the head dimension " + std::string(head_dim > 0 ? "head_dim = " : "d_model / heads = ") +
         std::to_string(head_width()) + " is odd; rotary position embedding needs pairs, an even number");
  if (!(query_pre_attn_scalar >= 0) || !(rope_local_theta == 0 || rope_local_theta >= 1))
    fail("expected query_pre_attn_scalar of at least 0, and rope_local_theta of 0 or at least 1");
  if (rope_local_theta > 0 && full_attention_every == 0)
    fail(
        "rope_local_theta is of layers beside those that see everything; set full_attention_every, or rope_local_theta "
        "= 0");
  if (is_like_gemma() && (experts.any() || is_split() || precision.eight_bit_products || residual_in_products))
    throw Error(
        ASSAY_UNSUPPORTED,
        "post_norms, norms_from_one, gate_activation = \"gelu_tanh\" and scaled_embeddings are of dense models, "
        "whole on each rank; expected them left out with experts, in tensor_parallel, with precision 'fp8' and "
        "with residual_add = \"product\"");
  if (sliding_window < 0 || full_attention_every < 0)
    fail("sliding_window " + std::to_string(sliding_window) + " and full_attention_every " +
         std::to_string(full_attention_every) + "; expected at least 0");
  if (full_attention_every > 0 && sliding_window == 0 && rope_local_theta == 0)
    fail("full_attention_every = " + std::to_string(full_attention_every) +
         " is of layers beside which others have a window; set sliding_window, or full_attention_every = 0");
  if (full_attention_every == 1 && (sliding_window > 0 || rope_local_theta > 0))
    fail("full_attention_every = 1 lets every layer see all tokens, so that none reads " +
         std::string(sliding_window > 0 ? "sliding_window" : "rope_local_theta") +
         "; expected at least 2, or 0 of all of them");
  if (!documents.empty() && (std::ranges::min(documents) < 1 ||
                             std::accumulate(documents.begin(), documents.end(), std::int64_t{0}) != context_length))
    fail("documents do not fill the sequence; expected lengths of at least 1 token that add up to context_length " +
         std::to_string(context_length));
  if (!(attention_soft_cap >= 0 && logit_soft_cap >= 0))
    fail("attention_soft_cap and logit_soft_cap are numbers of at least 0");
  if (precision.eight_bit_products && !fused)
    throw Error(ASSAY_UNSUPPORTED,
                "precision 'fp8' is of fused operations, which write 8 bits; expected execution = \"graph\"");
  validate_scores(*this);
  if (is_split()) validate_split(*this);
  if (shares_context()) validate_context(*this);
  if (is_pipelined()) validate_stages(*this);
  if (experts.any()) validate_experts(*this);
}

// Dimensions are those of what is here; what they start from is the distribution of the whole matrix.
DecoderParameters add_decoder_parameters(train::ParameterSet& set, const DecoderConfig& c) {
  const std::int64_t parts = c.split.ranks;
  const auto matrix = [](std::string name, std::int64_t out, std::int64_t in, std::int64_t out_parts,
                         std::int64_t in_parts) {
    return train::Parameter{
        std::move(name), {out / out_parts, in / in_parts}, 0, 0.0F, std::sqrt(2.0F / static_cast<float>(in + out))};
  };
  const auto by_outputs = [&](std::string name, std::int64_t out, std::int64_t in) {
    return matrix(std::move(name), out, in, parts, 1);
  };
  const auto by_inputs = [&](std::string name, std::int64_t out, std::int64_t in) {
    return matrix(std::move(name), out, in, 1, parts);
  };
  const float first_norm = c.norms_from_one ? 0.0F : 1.0F;
  const auto add_norm = [&](train::ParameterSet::Id& id, std::string name) {
    id = set.add({{std::move(name), {c.d_model}, 0, first_norm, 0.0F}});
  };
  // One after the other, since one operation reads both.
  const auto add_head_norms = [&](DecoderLayerParameters& p, const std::string& prefix) {
    if (!c.qk_norm) return;
    p.q_norm = set.add({{prefix + "attn.q_norm.weight", {c.head_width()}, 0, first_norm, 0.0F},
                        {prefix + "attn.k_norm.weight", {c.head_width()}, 0, first_norm, 0.0F}});
    p.k_norm = p.q_norm + 1;
  };
  const auto add_latent_products = [&](DecoderLayerParameters& p, const std::string& prefix) {
    const LatentAttention& a = c.latent;
    const auto norm = [&](const char* name, std::int64_t of) {
      return set.add({{prefix + name, {of}, 0, first_norm, 0.0F}});
    };
    p.latent.kv_b = set.add({by_outputs(prefix + "attn.kv_b_proj.weight", c.heads * a.up_width(), a.kv_lora_rank)});
    p.latent.kv_norm = norm("attn.kv_a_norm.weight", a.kv_lora_rank);
    if (a.q_lora_rank > 0) {
      p.latent.q_b = set.add({by_outputs(prefix + "attn.q_b_proj.weight", c.q_width(), a.q_lora_rank)});
      p.latent.q_norm = norm("attn.q_a_norm.weight", a.q_lora_rank);
    }
    const char* const of_queries = a.q_lora_rank > 0 ? "attn.q_a_proj.weight" : "attn.q_proj.weight";
    p.q = set.add({by_outputs(prefix + of_queries, a.query_width(c.heads), c.d_model),
                   by_outputs(prefix + "attn.kv_a_proj.weight", a.down_width(), c.d_model)});
    p.latent.kv_a = p.q + 1;
  };
  const auto prefix_of = [&](std::int64_t layer) {
    return "layers." + std::to_string(c.stage.first_layer + layer) + ".";
  };
  DecoderParameters ids{};
  ids.layers.resize(static_cast<std::size_t>(c.layers));
  const auto of_words = [](train::Parameter table) {
    table.row_parts = 0;
    return table;
  };
  if (!c.tied_embeddings && c.stage.has_head)
    ids.lm_head = set.add({of_words(by_outputs("lm_head.weight", c.vocab_size, c.d_model))});
  if (!c.is_split() && c.stage.has_head) add_norm(ids.ln_final, "ln_final.weight");
  for (std::int64_t l = c.layers - 1; l >= 0; --l) {
    const std::string prefix = prefix_of(l);
    DecoderLayerParameters& p = ids.layers[static_cast<std::size_t>(l)];
    if (c.post_norms) add_norm(p.ffw_norm, prefix + "post_ffw_norm.weight");
    if (c.has_experts(l)) {
      p.experts = add_expert_parameters(set, c, prefix);
    } else {
      p.w2 = set.add({by_inputs(prefix + "ffn.w2.weight", c.d_model, c.d_ff)});
      p.w1 = set.add({by_outputs(prefix + "ffn.w1.weight", c.d_ff, c.d_model),
                      by_outputs(prefix + "ffn.w3.weight", c.d_ff, c.d_model)});
      p.w3 = p.w1 + 1;
    }
    if (!c.is_split()) add_norm(p.ln2, prefix + "ln2.weight");
    if (c.post_norms) add_norm(p.attention_norm, prefix + "post_attention_norm.weight");
    p.output = set.add({by_inputs(prefix + "attn.output_proj.weight", c.d_model, c.attention_width())});
    if (c.output_bias)
      p.output_bias = set.add({train::Parameter{prefix + "attn.output_proj.bias", {c.d_model}, 0, 0.0F, 0.0F}});
    if (c.attention_sinks)
      p.sinks = set.add({train::Parameter{prefix + "attn.sinks", {c.heads / parts}, 0, 0.0F, 0.0F}});
    if (!c.is_split()) add_head_norms(p, prefix);
    if (c.latent.any()) {
      add_latent_products(p, prefix);
    } else {
      p.q = set.add({by_outputs(prefix + "attn.q_proj.weight", c.q_width(), c.d_model),
                     by_outputs(prefix + "attn.k_proj.weight", c.kv_width(), c.d_model),
                     by_outputs(prefix + "attn.v_proj.weight", c.kv_width(), c.d_model)});
      p.k = p.q + 1, p.v = p.q + 2;
    }
    if (c.qkv_bias) {
      const auto bias = [&](const char* name, std::int64_t width) {
        return train::Parameter{prefix + name, {width / parts}, 0, 0.0F, 0.0F};
      };
      p.q_bias = set.add({bias("attn.q_proj.bias", c.q_width()), bias("attn.k_proj.bias", c.kv_width()),
                          bias("attn.v_proj.bias", c.kv_width())});
      p.k_bias = p.q_bias + 1, p.v_bias = p.q_bias + 2;
    }
    if (!c.is_split()) add_norm(p.ln1, prefix + "ln1.weight");
  }
  if (!c.stage.has_embedding) return ids;
  train::Parameter embeddings = of_words(by_inputs("token_embeddings.weight", c.vocab_size, c.d_model));
  if (!c.tied_embeddings) embeddings.init_std = 1.0F;
  ids.embeddings = set.add({std::move(embeddings)});
  if (c.tied_embeddings) ids.lm_head = ids.embeddings;
  if (!c.is_split()) return ids;
  // One range of the arena, whose gradients are summed over the ranks at once.
  add_norm(ids.ln_final, "ln_final.weight");
  for (std::int64_t l = c.layers - 1; l >= 0; --l) {
    DecoderLayerParameters& p = ids.layers[static_cast<std::size_t>(l)];
    add_norm(p.ln2, prefix_of(l) + "ln2.weight");
    add_norm(p.ln1, prefix_of(l) + "ln1.weight");
  }
  for (std::int64_t l = c.layers - 1; l >= 0; --l)
    add_head_norms(ids.layers[static_cast<std::size_t>(l)], prefix_of(l));
  return ids;
}

train::ModelBlocks decoder_blocks(const DecoderParameters& ids) {
  train::ModelBlocks model;
  model.resident.name = "norms";
  model.resident.parameters = {ids.ln_final};
  model.blocks.push_back({"token_embeddings", {ids.embeddings}, false});
  for (std::size_t l = 0; l < ids.layers.size(); ++l) {
    const DecoderLayerParameters& p = ids.layers[l];
    std::vector<train::ParameterSet::Id> of_attention{p.output, p.q, p.k, p.v};
    if (p.latent.kv_b > 0) {
      of_attention = {p.output, p.latent.kv_b, p.q, p.latent.kv_a};
      if (p.latent.q_b > 0) of_attention.insert(of_attention.begin() + 2, p.latent.q_b);
    }
    model.blocks.push_back({"layers." + std::to_string(l), {p.w2, p.w1, p.w3}});
    model.blocks.back().parameters.insert(model.blocks.back().parameters.end(), of_attention.begin(),
                                          of_attention.end());
    if (p.output_bias > 0) model.blocks.back().parameters.push_back(p.output_bias);
    if (p.q_bias > 0)
      model.blocks.back().parameters.insert(model.blocks.back().parameters.end(), {p.q_bias, p.k_bias, p.v_bias});
  }
  for (auto p = ids.layers.rbegin(); p != ids.layers.rend(); ++p)
    for (const train::ParameterSet::Id id : {p->ffw_norm, p->ln2, p->attention_norm, p->sinks, p->latent.kv_norm,
                                             p->latent.q_norm, p->q_norm, p->k_norm, p->ln1})
      if (id > 0) model.resident.parameters.push_back(id);
  model.ends_with_first = ids.lm_head == ids.embeddings;
  if (!model.ends_with_first) model.blocks.push_back({"lm_head", {ids.lm_head}});
  return model;
}

std::uint64_t decoder_forward_flops(const DecoderConfig& c) {
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t products = 2 * u(c.rows()) *
                                 (u(c.layers) * u(c.attention_elements()) +
                                  u(c.dense_layers()) * u(c.d_model) * 3 * u(c.d_ff) + u(c.d_model) * u(c.vocab_size));
  // Two products, [T, D] x [D, T] and [T, T] x [T, V], the causal half of each: 2 * T * T * (D + V) / 2 per head. Of a
  // window and of documents their pairs. Ranks that share out the sequences have equal parts of it.
  std::uint64_t attention = 0;
  for (std::int64_t l = 0; l < c.layers; ++l) {
    const std::int64_t t = c.context_length, w = c.window_of(l);
    const std::uint64_t twice_pairs = !c.documents.empty() ? 2 * u(document_pairs(c.documents, w))
                                      : w > 0              ? 2 * u(compute::visible_pairs(t, t, true, w))
                                                           : u(t) * u(t);
    attention += u(c.batch_size) * twice_pairs * u(c.q_width() + c.attention_width()) / u(c.context.ranks);
  }
  const std::uint64_t experts = u(c.expert_layers()) * u(c.rows()) * expert_layer_flops(c);
  return products + attention + experts;
}

Work decoder_training_work(const DecoderConfig& c) {
  return {.flops = 3 * static_cast<std::uint64_t>(c.accumulation_steps) * decoder_forward_flops(c),
          .items = static_cast<std::uint64_t>(c.step_rows()),
          .arithmetic = workload::arithmetic_of(c.precision)};
}

DecoderModel::DecoderModel(const DecoderConfig& config, const train::ParameterSet& set, const DecoderParameters& ids,
                           const Residence& residence, train::PartExchange* exchange)
    : config_(config), set_(set), ids_(ids), residence_(residence), exchange_(exchange), unsplit_(config.precision) {
  config_.validate();
  if (residence_.blocks && lanes())
    throw Error(ASSAY_INVALID_ARGUMENT, "a model whose parameters come and go by blocks has no side lane");
  if (config_.is_split() && (residence_.blocks || !exchange_))
    throw Error(ASSAY_INVALID_ARGUMENT, "a split model has other ranks, and all of its part of the parameters is here");
  if (config_.shares_context() && (residence_.blocks || !exchange_))
    throw Error(ASSAY_INVALID_ARGUMENT,
                "a model whose sequences are shared out has other ranks, and all of its parameters are here");
  plan_buffers();
}

// Every tensor that some form of the step makes; those that this one does not use take no memory. When each is alive
// follows from the step.
void DecoderModel::plan_buffers() {
  using Use = train::BufferPlan::Use;
  const std::int64_t n = config_.rows(), own_n = config_.own_rows(), d = config_.d_model;
  const DType act = config_.precision.activation;
  const std::int64_t pairs = config_.rotated_width() / 2;
  cos_ = plan_.add("rotary.cos", DType::f32, {config_.own_context(), pairs}, Use::outlives_steps);
  sin_ = plan_.add("rotary.sin", DType::f32, {config_.own_context(), pairs}, Use::outlives_steps);
  if (config_.shares_context()) {
    whole_cos_ = plan_.add("rotary.cos.whole", DType::f32, {config_.context_length, pairs});
    whole_sin_ = plan_.add("rotary.sin.whole", DType::f32, {config_.context_length, pairs});
  }
  local_cos_ = cos_, local_sin_ = sin_;
  if (config_.rope_local_theta > 0) {
    local_cos_ = plan_.add("rotary.local.cos", DType::f32, {config_.own_context(), pairs}, Use::outlives_steps);
    local_sin_ = plan_.add("rotary.local.sin", DType::f32, {config_.own_context(), pairs}, Use::outlives_steps);
  }
  if (!config_.documents.empty()) {
    first_keys_ = plan_.add("documents.first_keys", DType::i32, {config_.batch_size, config_.context_length},
                            Use::outlives_steps);
    document_starts_ =
        plan_.add("documents.starts", DType::i32,
                  {config_.batch_size * static_cast<std::int64_t>(config_.documents.size()) + 1}, Use::outlives_steps);
    whole_documents_ = {config_.documents, config_.batch_size, 0};
    windowed_documents_ = {config_.documents, config_.batch_size, config_.sliding_window};
  }
  for (std::int64_t l = 0; l < config_.layers; ++l) {
    const std::string name = "layers." + std::to_string(l) + ".";
    const Id input = plan_.add(name + "input", act, {own_n, d});
    plan_routing(l, name);
    forward_.push_back(plan_layer_forward(name, input));
    recomputed_.push_back(config_.checkpointing ? plan_layer_forward(name + "again.", input, &forward_.back())
                                                : forward_.back());
    backward_.push_back(plan_layer_backward(name + "backward."));
    if (!config_.has_experts(l)) continue;
    forward_.back().experts = recomputed_.back().experts = plan_expert_forward(name + "moe.");
    if (config_.checkpointing) recomputed_.back().experts = plan_expert_forward(name + "again.moe.");
    backward_.back().experts = plan_expert_backward(name + "backward.moe.");
  }
  final_input_ = plan_.add("final.input", act, {own_n, d});
  final_normed_ = plan_.add("final.normed", act, {n, d});
  final_rstd_ = plan_.add("final.rstd", DType::f32, {own_n});
  // Without a backward the logits are the result.
  logits_ =
      plan_.add("logits", act, {chunk_rows(), config_.own_words()}, config_.backward ? Use::temporary : Use::result);
  kept_logits_ = logits_;
  if (config_.keep_logits) kept_logits_ = plan_.add("logits.kept", act, {n, config_.vocab_size}, Use::result);
  // Those of earlier micro-batches wait for the last one's.
  const bool accumulates = config_.accumulation_steps > 1;
  const bool keeps_losses = accumulates && config_.stage.has_head;
  const std::int64_t losses = config_.step_rows() * (config_.is_split() ? 1 + config_.split.ranks : 1);
  losses_ = plan_.add("losses", DType::f32, {losses}, keeps_losses ? Use::outlives_steps : Use::temporary);
  lse_ = plan_.add("losses.lse", DType::f32, {n});
  loss_ = plan_.add("loss", DType::f32, {1}, Use::result);
  dx_ = dx_middle_ = plan_.add("residual.gradient", act, {n, d});
  if (lanes()) dx_middle_ = plan_.add("residual.gradient.middle", act, {n, d});
  dfinal_ = plan_.add("final.normed.gradient", act, {n, d});
  if (config_.is_split()) plan_split();
  if (config_.experts.any()) plan_experts();

  const Tensor tokens(train::unbound_place(train::UnboundMemory::inputs, 0), DType::i64, {n});
  const std::int64_t last = config_.accumulation_steps - 1;
  const auto step = [&](compute::Backend& recorder) {
    if (config_.is_split()) recorder.upload(plan_[split_.drawn], nullptr);
    if (config_.shares_context()) rotation_of_own_chunks(recorder);
    forward_by(recorder, tokens, &tokens, n, last);
    if (config_.backward) backward_by(recorder, tokens, tokens, n, last, nullptr);
  };
  if (!config_.stage.is_whole()) {  // other micro-batches run between the two
    is_planning_ = true;
    train::plan_step_in_two_parts(
        plan_, [&](compute::Backend& recorder) { forward_by(recorder, tokens, &tokens, n, last); },
        [&](compute::Backend& recorder) { backward_by(recorder, tokens, tokens, n, last, nullptr); });
    is_planning_ = false;
    return;
  }
  const train::ParameterSet& gradients = residence_.kept ? *residence_.kept : set_;
  is_planning_ = true;
  train::plan_step(plan_, config_.backward && !accumulates ? &gradients : nullptr, step);
  if (residence_.blocks) residence_.blocks->plan(step);
  is_planning_ = false;
}

DecoderModel::Forward DecoderModel::plan_layer_forward(const std::string& name, Id input, const Forward* first) {
  const std::int64_t n = config_.rows(), own_n = config_.own_rows(), d = config_.d_model, ff = config_.own_d_ff();
  const std::int64_t b = config_.batch_size, t = config_.own_context(), h = config_.own_heads();
  const DType act = config_.precision.activation;
  Forward f{};
  f.input = input;
  f.normed1 = plan_.add(name + "normed1", act, {n, d});
  f.rstd1 = plan_.add(name + "rstd1", DType::f32, {own_n});
  f.qkv = plan_.add(name + "qkv", act, {n, config_.own_qkv_width()});
  if (config_.qk_norm) {
    const std::int64_t turned_width = config_.own_q_width() + config_.own_kv_width();
    f.heads = plan_.add(name + "heads", act, {n, turned_width});
    f.heads_rstd = plan_.add(name + "heads.rstd", DType::f32, {n * (h + config_.own_key_heads())});
    f.turned = plan_.add(name + "heads.turned", act, {n, turned_width});
  }
  if (config_.latent.any()) f.latent = plan_latent_forward(name + "latent.");
  f.attention = plan_.add(name + "attention", act, {n, config_.own_attention_width()});
  f.lse = plan_.add(name + "lse", DType::f32, {b, h, t});
  f.scores = plan_.add(name + "scores", act, {b, h, score_rows(), config_.context_length});
  if (config_.shares_context()) f.context = plan_context_forward(name);
  f.branch1 = plan_.add(name + "attention.projected", act, {n, d});
  f.middle = plan_.add(name + "middle", act, {own_n, d});
  f.normed2 = plan_.add(name + "normed2", act, {n, d});
  f.rstd2 = plan_.add(name + "rstd2", DType::f32, {own_n});
  f.gate_up = plan_.add(name + "gate_up", act, {n, 2 * ff});
  f.silu = plan_.add(name + "silu", act, {n, ff});
  f.hidden = plan_.add(name + "hidden", act, {n, ff});
  f.branch2 = plan_.add(name + "feed_forward", act, {n, d});
  // Forms that few models have take no room in the plan of the others, which is of all tensors laid one after another.
  const auto post = [&](const char* of) {
    return PostNorm{plan_.add(name + of + ".normed", act, {n, d}), plan_.add(name + of + ".rstd", DType::f32, {n})};
  };
  if (config_.post_norms) f.post1 = post("attention.projected"), f.post2 = post("feed_forward");
  if (eight_bits()) {
    f.qkv_8 = plan_eight_bits(name + "qkv.", d, config_.qkv_width(), first ? &first->qkv_8 : nullptr);
    f.output_8 = plan_eight_bits(name + "output.", config_.q_width(), d, first ? &first->output_8 : nullptr);
    f.gate_up_8 = plan_eight_bits(name + "gate_up.", d, 2 * ff, first ? &first->gate_up_8 : nullptr);
    f.w2_8 = plan_eight_bits(name + "w2.", ff, d, first ? &first->w2_8 : nullptr);
  }
  return f;
}

DecoderModel::Backward DecoderModel::plan_layer_backward(const std::string& name) {
  const std::int64_t n = config_.rows(), d = config_.d_model, ff = config_.own_d_ff();
  const DType act = config_.precision.activation;
  const auto rows = [&](const char* what, std::int64_t columns) { return plan_.add(name + what, act, {n, columns}); };
  const auto scores = [&](const char* what) {
    return plan_.add(name + what, act, {config_.batch_size, config_.own_heads(), score_rows(), config_.context_length});
  };
  Backward g{};
  g.silu = rows("silu", ff), g.dsilu = rows("dsilu", ff);
  g.hidden = rows("hidden", ff), g.dhidden = rows("dhidden", ff);
  g.normed2 = rows("normed2", d), g.dnormed2 = rows("dnormed2", d);
  g.dattention = rows("dattention", config_.own_attention_width());
  g.dqkv = rows("dqkv", config_.own_qkv_width());
  if (config_.qk_norm) g.dheads = rows("dheads", config_.own_q_width() + config_.own_kv_width());
  if (config_.latent.any()) g.latent = plan_latent_backward(name + "latent.");
  if (config_.shares_context()) g.context = plan_context_backward(name);
  g.scores = scores("scores"), g.dscores = scores("dscores");
  g.normed1 = rows("normed1", d), g.dnormed1 = rows("dnormed1", d);
  if (config_.post_norms) g.dbranch1 = rows("attention.projected", d), g.dbranch2 = rows("feed_forward", d);
  if (eight_bits()) {
    g.w2_8 = plan_eight_bits(name + "w2.", d, ff);
    g.gate_up_8 = plan_eight_bits(name + "gate_up.", 2 * ff, d);
    g.output_8 = plan_eight_bits(name + "output.", d, config_.q_width());
    g.qkv_8 = plan_eight_bits(name + "qkv.", config_.qkv_width(), d);
  }
  return g;
}

}  // namespace assay::models
