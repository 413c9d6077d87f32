#include "assay/models/decoder_params.hpp"

#include <assay/models/dimensions.hpp>
#include <assay/train/optimizer_params.hpp>
#include <assay/workload/unread_settings.hpp>

namespace assay::models {

compute::RotaryScaling rope_scaling(const Case& c, std::span<const Preset> presets) {
  using Kind = compute::RotaryScalingKind;
  constexpr workload::ChoiceSetting settings[] = {{"rope_factor", {"linear", "llama3", "yarn"}},
                                                  {"rope_original_context", {"llama3", "yarn"}},
                                                  {"rope_low_freq_factor", {"llama3"}},
                                                  {"rope_high_freq_factor", {"llama3"}},
                                                  {"rope_beta_fast", {"yarn"}},
                                                  {"rope_beta_slow", {"yarn"}},
                                                  {"rope_truncate", {"yarn"}},
                                                  {"rope_attention_factor", {"yarn"}},
                                                  {"rope_mscale_all_dim", {"yarn"}}};
  workload::require_read(c, "rope_scaling", settings, rope_scaling_params, presets);
  compute::RotaryScaling s;
  s.kind = c.choice("rope_scaling", rope_scalings);
  s.factor = c.get<double>("rope_factor");
  s.original_positions = static_cast<double>(c.get<std::int64_t>("rope_original_context"));
  s.low = c.get<double>("rope_low_freq_factor"), s.high = c.get<double>("rope_high_freq_factor");
  s.beta_fast = c.get<double>("rope_beta_fast"), s.beta_slow = c.get<double>("rope_beta_slow");
  s.whole_pairs = c.get<bool>("rope_truncate");
  s.magnitude = c.get<double>("rope_attention_factor");
  const auto name = c.get<std::string>("rope_scaling");
  const auto refuse = [&](const std::string& what) {
    throw Error(ASSAY_INVALID_ARGUMENT, "rope_scaling = \"" + name + "\" " + what);
  };
  if (s.kind == Kind::none) return s;
  // A file of a model may say so.
  const bool is_of_file = !c.get<std::string_view>(of_config_file).empty();
  if (s.factor == 1 && !(s.kind == Kind::yarn && s.magnitude > 0) && !is_of_file)
    refuse(
        "scales by rope_factor = 1, which changes nothing; expected rope_factor above 1, or rope_scaling = \"none\"");
  if (s.kind == Kind::linear) return s;
  if (s.original_positions == 0) refuse("needs rope_original_context, the tokens of the first training's sequences");
  if (s.kind == Kind::llama3 && !(0 < s.low && s.low < s.high))
    refuse("expected 0 < rope_low_freq_factor < rope_high_freq_factor");
  if (s.kind == Kind::yarn && !(0 < s.beta_slow && s.beta_slow < s.beta_fast))
    refuse("expected 0 < rope_beta_slow < rope_beta_fast");
  if (s.kind == Kind::yarn && c.get<double>("rope_theta") == 1) refuse("expected a rope_theta above 1");
  return s;
}

DecoderConfig decoder_config(const Case& c, const char* decided_by, std::span<const Preset> presets) {
  if (c.get<std::string>(decided_by) == of_config_file && c.get<std::string>(of_config_file).empty())
    throw Error(ASSAY_INVALID_ARGUMENT,
                std::string(decided_by) +
                    " = \"config_file\" is of a model that has one; expected config_file = \"path of a config.json\"");
  require_dimensions(c, decided_by, {"d_model", "d_ff", "layers", "heads"});
  DecoderConfig model;
  model.d_model = c.get<std::int64_t>("d_model");
  model.d_ff = c.get<std::int64_t>("d_ff");
  model.layers = c.get<std::int64_t>("layers");
  model.heads = c.get<std::int64_t>("heads");
  model.kv_heads = c.get<std::int64_t>("kv_heads");
  model.head_dim = c.get<std::int64_t>("head_dim");
  model.qkv_bias = c.get<bool>("qkv_bias");
  model.qk_norm = c.get<bool>("qk_norm");
  model.output_bias = c.get<bool>("output_bias");
  model.tied_embeddings = c.get<bool>("tied_embeddings");
  model.rope_theta = c.get<double>("rope_theta");
  model.rope_scaling = rope_scaling(c, presets);
  model.post_norms = c.get<bool>("post_norms");
  model.norms_from_one = c.get<bool>("norms_from_one");
  model.gate_activation = c.choice("gate_activation", gate_activations);
  model.scaled_embeddings = c.get<bool>("scaled_embeddings");
  model.query_pre_attn_scalar = c.get<double>("query_pre_attn_scalar");
  model.rope_local_theta = c.get<double>("rope_local_theta");
  model.norm_eps = c.get<double>("norm_eps");
  model.latent = {.kv_lora_rank = c.get<std::int64_t>("kv_lora_rank"),
                  .q_lora_rank = c.get<std::int64_t>("q_lora_rank"),
                  .qk_nope_head_dim = c.get<std::int64_t>("qk_nope_head_dim"),
                  .qk_rope_head_dim = c.get<std::int64_t>("qk_rope_head_dim"),
                  .v_head_dim = c.get<std::int64_t>("v_head_dim"),
                  .mscale_all_dim = c.get<double>("rope_mscale_all_dim")};
  model.sliding_window = c.get<std::int64_t>("sliding_window");
  model.full_attention_every = c.get<std::int64_t>("full_attention_every");
  model.attention_sinks = c.get<bool>("attention_sinks");
  model.attention_soft_cap = c.get<double>("attention_soft_cap");
  model.logit_soft_cap = c.get<double>("logit_soft_cap");
  model.vocab_size = c.get<std::int64_t>("vocab_size");
  model.batch_size = c.get<std::int64_t>("batch_size");
  model.context_length = c.get<std::int64_t>("context_length");
  model.documents = documents_of(c, model.context_length);
  model.loss_chunks = c.get<std::int64_t>("loss_chunks");
  model.precision = workload::precision_policy(c.get<std::string_view>("precision"), c.device_kind());
  model.flash = c.choice("attention", attention_paths) == AttentionPath::flash;
  model.checkpointing = c.get<bool>("activation_checkpointing");
  model.residual_in_products = c.choice("residual_add", residual_adds) == ResidualAdd::product;
  model.keep_outputs = c.get<bool>("keep_outputs");
  if (model.precision.eight_bit_products && (model.keep_outputs || model.residual_in_products))
    throw Error(
        ASSAY_UNSUPPORTED,
        "precision 'fp8' keeps its outputs in 8 bits, and adds residuals in norms; expected keep_outputs = false "
        "and residual_add = \"norm\"");
  return model;
}

void validate_decoder(const Case& c, const DecoderConfig& model, const std::string& decided_by) {
  try {
    model.validate();
  } catch (const Error& e) {
    const auto file = c.get<std::string>(of_config_file);
    throw Error(e.status(), std::string(e.what()) + " (what the experiment does not set is of " +
                                (file.empty() ? decided_by + " = \"" + c.get<std::string>(decided_by.c_str())
                                              : std::string(of_config_file) + " = \"" + file) +
                                "\")");
  }
}

void require_fused(const DecoderConfig& model, const std::string& setting, bool is_set) {
  if (is_set && !model.fused)
    throw Error(ASSAY_INVALID_ARGUMENT, setting +
                                            " needs fused operations, which execution = \"eager\" does not use; leave "
                                            "it out, or set execution = \"graph\"");
}

DecoderTrainerConfig decoder_trainer_config(const Case& c, train::WholeMatrixOptimizers of_matrices) {
  DecoderTrainerConfig config;
  config.model = decoder_config(c);
  validate_decoder(c, config.model);
  config.optimizer = train::optimizer_config(c, of_matrices);
  config.seed = c.seed();
  config.data_rank = c.rank();
  config.data_ranks = c.rank_count();
  return config;
}

}  // namespace assay::models
