// The decoder's reference: see reference.hpp.
#pragma once
#include <assay/models/decoder.hpp>
#include <cmath>
#include <stdexcept>
#include <string>

#include "support/reference.hpp"

namespace assay::test {

inline const std::string decoder_data = reference_folder("decoder");

// The families of scripts/decoder_families.py by the folders of their data.
inline models::DecoderConfig family_config(const std::string& family) {
  using Kind = compute::RotaryScalingKind;
  models::DecoderConfig c;
  c.vocab_size = 53, c.batch_size = 2, c.context_length = 13;
  c.d_model = 24, c.d_ff = 40, c.layers = 2, c.heads = 4, c.kv_heads = 2, c.head_dim = 6;
  c.tied_embeddings = true;
  c.rope_theta = 100;
  if (family == "decoder_llama3") {
    c.rope_scaling = {.kind = Kind::llama3, .factor = 4, .original_positions = 32};
  } else if (family == "decoder_yarn") {
    c.tied_embeddings = false;
    c.head_dim = 8, c.rope_theta = 1e4;
    c.rope_scaling = {.kind = Kind::yarn, .factor = 8, .original_positions = 64, .beta_fast = 4, .beta_slow = 0.25};
  } else if (family == "decoder_gemma") {
    c.post_norms = c.norms_from_one = c.scaled_embeddings = c.qk_norm = true;
    c.gate_activation = compute::Activation::gelu_tanh;
    c.query_pre_attn_scalar = 10;
    c.sliding_window = 5, c.full_attention_every = 2, c.rope_local_theta = 20, c.norm_eps = 1e-3;
    c.rope_scaling = {.kind = Kind::linear, .factor = 4};
  } else if (family == "decoder_gemma2") {
    c.post_norms = c.norms_from_one = c.scaled_embeddings = true;
    c.gate_activation = compute::Activation::gelu_tanh;
    c.query_pre_attn_scalar = 10;
    c.sliding_window = 5, c.full_attention_every = 2;
    c.attention_soft_cap = 1.5, c.logit_soft_cap = 4;
  } else if (family == "decoder_latent") {
    c.tied_embeddings = false;
    c.heads = 3, c.kv_heads = c.head_dim = 0, c.rope_theta = 1e4, c.norm_eps = 1e-6;
    c.latent = {.kv_lora_rank = 10,
                .q_lora_rank = 9,
                .qk_nope_head_dim = 5,
                .qk_rope_head_dim = 8,
                .v_head_dim = 7,
                .mscale_all_dim = 0.9};
    c.rope_scaling = {.kind = Kind::yarn,
                      .factor = 8,
                      .original_positions = 64,
                      .beta_fast = 4,
                      .beta_slow = 0.25,
                      .magnitude = (1 + 0.05 * std::log(8.0)) / (1 + 0.09 * std::log(8.0))};
  } else if (family == "decoder_latent_lite") {
    c.heads = 3, c.kv_heads = c.head_dim = 0, c.norm_eps = 1e-6;
    c.latent = {.kv_lora_rank = 11, .qk_nope_head_dim = 7, .qk_rope_head_dim = 6, .v_head_dim = 5};
  } else {
    throw std::invalid_argument("no family of decoders has the data " + family);
  }
  return c;
}
inline constexpr const char* decoder_families[] = {"decoder_llama3", "decoder_yarn",   "decoder_gemma",
                                                   "decoder_gemma2", "decoder_latent", "decoder_latent_lite"};

template <class ValuesOf>
double worst_decoder_error(const std::string& prefix, ValuesOf values_of) {
  return worst_reference_error("decoder", prefix, values_of);
}

}  // namespace assay::test
