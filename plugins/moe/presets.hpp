// Mixtures of experts that people train, as their published configurations have them.
#pragma once
#include <assay/plugin.hpp>

#include <array>
#include <cstdint>

namespace moe {

struct Preset {
  const char* name;
  std::int64_t d_model, d_ff, layers, heads, kv_heads, head_dim, vocab_size;
  std::int64_t experts, experts_per_token, expert_d_ff, shared_d_ff, first_dense_layers;
  double rope_theta, norm_eps;
  bool qkv_bias, normalized_weights, expert_biases;
  double unit_alpha, unit_limit, unit_offset;
};

inline constexpr std::array<Preset, 5> models{{
    {"tiny", 64, 256, 2, 4, 2, 0, 1'000, 8, 2, 64, 0, 0, 1e4, 1e-5, false, true, false, 1, 0, 0},
    {"qwen3-30b-a3b", 2048, 6144, 48, 32, 4, 128, 151'936, 128, 8, 768, 0, 0, 1e6, 1e-6, false, true, false, 1, 0, 0},
    {"gpt-oss-20b", 2880, 2880, 24, 64, 8, 64, 201'088, 32, 4, 2880, 0, 0, 1.5e5, 1e-5, true, true, true, 1.702, 7, 1},
    {"deepseek-v2-lite",
     2048,
     10'944,
     27,
     16,
     16,
     0,
     102'400,
     64,
     6,
     1408,
     2816,
     1,
     1e4,
     1e-6,
     false,
     false,
     false,
     1,
     0,
     0},
    {"mixtral-8x7b", 4096, 14'336, 32, 32, 8, 0, 32'000, 8, 2, 14'336, 0, 0, 1e6, 1e-5, false, true, false, 1, 0, 0},
}};

inline constexpr auto model_names =
    std::apply([](const auto&... model) { return assay::names(model.name...); }, models);

inline constexpr auto presets = [] {
  constexpr std::size_t of_each = 20;
  std::array<assay::Preset, of_each * models.size()> all{};
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
    integer("heads", m.heads), integer("kv_heads", m.kv_heads), integer("head_dim", m.head_dim),
        integer("vocab_size", m.vocab_size);
    integer("experts", m.experts), integer("experts_per_token", m.experts_per_token);
    integer("expert_d_ff", m.expert_d_ff), integer("shared_d_ff", m.shared_d_ff);
    integer("first_dense_layers", m.first_dense_layers);
    real("rope_theta", m.rope_theta), real("norm_eps", m.norm_eps);
    boolean("qkv_bias", m.qkv_bias), boolean("normalized_weights", m.normalized_weights);
    boolean("expert_biases", m.expert_biases);
    real("unit_alpha", m.unit_alpha), real("unit_limit", m.unit_limit), real("unit_offset", m.unit_offset);
  }
  return all;
}();

}  // namespace moe
