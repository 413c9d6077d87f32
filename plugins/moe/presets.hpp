// Mixtures of experts that people train, as their published configurations have them.
#pragma once
#include <assay/plugin.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

namespace moe {

// Latent attention; a model without it has no rows of it.
struct LatentPreset {
  std::int64_t kv_lora_rank = 0, q_lora_rank = 0, qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
};
// A rotation that yarn scales; a model without it has no rows of it.
struct YarnPreset {
  double factor = 0;
  std::int64_t original_context = 0;
  bool truncate = true;
  double attention_factor = 0;  // 1 where mscale and mscale_all_dim are alike: cosines and sines stay
  double mscale_all_dim = 0;
};
struct Preset {
  const char* name;
  std::int64_t d_model, d_ff, layers, heads, kv_heads, head_dim = 0, vocab_size;  // head_dim 0: d_model / heads
  std::int64_t experts, experts_per_token, expert_d_ff, shared_d_ff = 0, first_dense_layers = 0;
  double rope_theta, norm_eps;
  bool qkv_bias = false, qk_norm = false, normalized_weights = true, expert_biases = false;
  double unit_alpha = 1, unit_limit = 0, unit_offset = 0;
  std::int64_t sliding_window = 0, full_attention_every = 0;
  bool attention_sinks = false, output_bias = false;
  LatentPreset latent = {};
  YarnPreset yarn = {};
};

inline constexpr std::array<Preset, 5> models{{
    {.name = "tiny",
     .d_model = 64,
     .d_ff = 256,
     .layers = 2,
     .heads = 4,
     .kv_heads = 2,
     .vocab_size = 1'000,
     .experts = 8,
     .experts_per_token = 2,
     .expert_d_ff = 64,
     .rope_theta = 1e4,
     .norm_eps = 1e-5},
    {.name = "qwen3-30b-a3b",
     .d_model = 2048,
     .d_ff = 6144,
     .layers = 48,
     .heads = 32,
     .kv_heads = 4,
     .head_dim = 128,
     .vocab_size = 151'936,
     .experts = 128,
     .experts_per_token = 8,
     .expert_d_ff = 768,
     .rope_theta = 1e6,
     .norm_eps = 1e-6,
     .qk_norm = true},
    {.name = "gpt-oss-20b",
     .d_model = 2880,
     .d_ff = 2880,
     .layers = 24,
     .heads = 64,
     .kv_heads = 8,
     .head_dim = 64,
     .vocab_size = 201'088,
     .experts = 32,
     .experts_per_token = 4,
     .expert_d_ff = 2880,
     .rope_theta = 1.5e5,
     .norm_eps = 1e-5,
     .qkv_bias = true,
     .expert_biases = true,
     .unit_alpha = 1.702,
     .unit_limit = 7,
     .unit_offset = 1,
     .sliding_window = 128,
     .full_attention_every = 2,
     .attention_sinks = true,
     .output_bias = true,
     .yarn = {.factor = 32, .original_context = 4096, .truncate = false}},
    {.name = "deepseek-v2-lite",
     .d_model = 2048,
     .d_ff = 10'944,
     .layers = 27,
     .heads = 16,
     .kv_heads = 16,
     .vocab_size = 102'400,
     .experts = 64,
     .experts_per_token = 6,
     .expert_d_ff = 1408,
     .shared_d_ff = 2816,
     .first_dense_layers = 1,
     .rope_theta = 1e4,
     .norm_eps = 1e-6,
     .normalized_weights = false,
     .latent = {.kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128},
     .yarn = {.factor = 40, .original_context = 4096, .attention_factor = 1, .mscale_all_dim = 0.707}},
    {.name = "mixtral-8x7b",
     .d_model = 4096,
     .d_ff = 14'336,
     .layers = 32,
     .heads = 32,
     .kv_heads = 8,
     .vocab_size = 32'000,
     .experts = 8,
     .experts_per_token = 2,
     .expert_d_ff = 14'336,
     .rope_theta = 1e6,
     .norm_eps = 1e-5},
}};

inline constexpr auto model_names =
    std::apply([](const auto&... model) { return assay::names(model.name..., "config_file"); }, models);

inline constexpr auto presets = [] {
  constexpr std::size_t of_each = 25, of_yarn = 8, of_latent = 5;
  constexpr std::size_t scaled =
      std::count_if(models.begin(), models.end(), [](const Preset& m) { return m.yarn.factor > 0; });
  constexpr std::size_t latent =
      std::count_if(models.begin(), models.end(), [](const Preset& m) { return m.latent.kv_lora_rank > 0; });
  std::array<assay::Preset, of_each * models.size() + of_yarn * scaled + of_latent * latent> all{};
  std::size_t i = 0;
  for (const Preset& m : models) {
    const auto integer = [&](const char* name, std::int64_t value) {
      all[i++] = assay::Preset::integer("model", m.name, name, value);
    };
    const auto real = [&](const char* name, double value) {
      all[i++] = assay::Preset::real("model", m.name, name, value);
    };
    const auto boolean = [&](const char* name, bool value) {
      all[i++] = assay::Preset::boolean("model", m.name, name, value);
    };
    integer("d_model", m.d_model), integer("d_ff", m.d_ff), integer("layers", m.layers);
    integer("heads", m.heads), integer("kv_heads", m.kv_heads);
    integer("head_dim", m.head_dim), integer("vocab_size", m.vocab_size);
    integer("experts", m.experts), integer("experts_per_token", m.experts_per_token);
    integer("expert_d_ff", m.expert_d_ff), integer("shared_d_ff", m.shared_d_ff);
    integer("first_dense_layers", m.first_dense_layers);
    real("rope_theta", m.rope_theta), real("norm_eps", m.norm_eps);
    boolean("qkv_bias", m.qkv_bias), boolean("qk_norm", m.qk_norm);
    boolean("normalized_weights", m.normalized_weights);
    boolean("expert_biases", m.expert_biases);
    integer("sliding_window", m.sliding_window), integer("full_attention_every", m.full_attention_every);
    boolean("attention_sinks", m.attention_sinks), boolean("output_bias", m.output_bias);
    real("unit_alpha", m.unit_alpha), real("unit_limit", m.unit_limit), real("unit_offset", m.unit_offset);
    if (m.latent.kv_lora_rank > 0) {
      integer("kv_lora_rank", m.latent.kv_lora_rank), integer("q_lora_rank", m.latent.q_lora_rank);
      integer("qk_nope_head_dim", m.latent.qk_nope_head_dim), integer("qk_rope_head_dim", m.latent.qk_rope_head_dim);
      integer("v_head_dim", m.latent.v_head_dim);
    }
    if (m.yarn.factor > 0) {
      all[i++] = assay::Preset::text("model", m.name, "rope_scaling", "yarn");
      real("rope_factor", m.yarn.factor), integer("rope_original_context", m.yarn.original_context);
      real("rope_beta_fast", 32), real("rope_beta_slow", 1), boolean("rope_truncate", m.yarn.truncate);
      real("rope_attention_factor", m.yarn.attention_factor), real("rope_mscale_all_dim", m.yarn.mscale_all_dim);
    }
  }
  return all;
}();

}  // namespace moe
