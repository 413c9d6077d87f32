// Facts on families of published models that their files do not state.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace assay::host::experiment {

// A row says what all models of a family have and no field of their files says.
struct Family {
  const char *model_type, *architecture;
  bool qkv_bias = false;            // in every model
  bool qk_norm = false;             // norms on queries and keys
  bool says_attention_bias = true;  // a field that may be true, of biases that include the output's
  bool says_mlp_bias = false;
  bool requires_head_dim = false;  // left out it is no quotient
  bool requires_key_heads = true;  // left out they are a number that transformers sets, and not as many as of queries
  bool gemma = false;              // weights of norms count from one, GeGLU, scaled embeddings, tied where left out
  bool post_norms = false;         // at the ends of branches
  bool latent = false;             // attention (DeepSeek-V2), with its experts and its yarn
  bool local_layers = false;       // with a window, beside those that see everything
  bool window_of_all = false;      // a window that all layers have, or none
  bool local_rotation = false;     // which have a separate base
  bool caps_scores = false;        // a soft cap of scores, which the file says
  bool caps_logits = false;        // and one of logits
  std::int64_t full_every = 0;     // of local layers, where the file does not list them; 0: it says how many
  const char* experts = nullptr;   // the field that counts a layer's experts; none: the model is dense
  const char* expert_width = nullptr;
  bool says_normalized = false;  // whether a token's weights add up to one
  bool gpt_oss = false;          // sinks, biases of all products, and its unit
};
inline constexpr Family known_families[] = {
    {.model_type = "llama", .architecture = "LlamaForCausalLM", .says_mlp_bias = true, .requires_key_heads = false},
    {.model_type = "qwen2", .architecture = "Qwen2ForCausalLM", .qkv_bias = true, .says_attention_bias = false},
    {.model_type = "qwen3", .architecture = "Qwen3ForCausalLM", .qk_norm = true, .requires_head_dim = true},
    {.model_type = "gemma", .architecture = "GemmaForCausalLM", .requires_head_dim = true, .gemma = true},
    {.model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .requires_head_dim = true,
     .gemma = true,
     .post_norms = true,
     .local_layers = true,
     .caps_scores = true,
     .caps_logits = true,
     .full_every = 2},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .qk_norm = true,
     .requires_head_dim = true,
     .gemma = true,
     .post_norms = true,
     .local_layers = true,
     .local_rotation = true,
     .caps_logits = true},
    {.model_type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .qk_norm = true,
     .requires_head_dim = true,
     .experts = "num_experts",
     .expert_width = "moe_intermediate_size",
     .says_normalized = true},
    {.model_type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .says_attention_bias = false,
     .window_of_all = true,
     .experts = "num_local_experts",
     .expert_width = "intermediate_size"},
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .qkv_bias = true,
     .says_attention_bias = false,
     .requires_head_dim = true,
     .local_layers = true,
     .full_every = 2,
     .experts = "num_local_experts",
     .expert_width = "intermediate_size",
     .gpt_oss = true},
    {.model_type = "deepseek_v2",
     .architecture = "DeepseekV2ForCausalLM",
     .says_mlp_bias = true,
     .latent = true,
     .experts = "n_routed_experts",
     .expert_width = "moe_intermediate_size"}};

// Fields that change no number of a training that starts here: they name the tokens of a tokenizer, formats and the
// program that wrote the file, or say how text is generated. Workloads draw the weights that training starts from as
// their pages say; max_position_embeddings is a bound, and pretraining_tp says how products are cut.
inline constexpr const char* without_meaning[] = {
    "_name_or_path",  "bos_token_id",      "cache_implementation",    "dtype",
    "eos_token_id",   "initializer_range", "max_position_embeddings", "pad_token_id",
    "pretraining_tp", "torch_dtype",       "transformers_version",    "unsloth_fixed",
    "use_cache"};

// The parameters that a file may decide. "size" and "model" are those that a file takes the place of.
inline constexpr const char* decided[] = {"size",
                                          "model",
                                          "d_model",
                                          "d_ff",
                                          "layers",
                                          "heads",
                                          "kv_heads",
                                          "head_dim",
                                          "vocab_size",
                                          "qkv_bias",
                                          "qk_norm",
                                          "tied_embeddings",
                                          "rope_theta",
                                          "norm_eps",
                                          "rope_scaling",
                                          "rope_factor",
                                          "rope_original_context",
                                          "rope_low_freq_factor",
                                          "rope_high_freq_factor",
                                          "rope_beta_fast",
                                          "rope_beta_slow",
                                          "rope_truncate",
                                          "rope_attention_factor",
                                          "rope_local_theta",
                                          "post_norms",
                                          "norms_from_one",
                                          "gate_activation",
                                          "scaled_embeddings",
                                          "query_pre_attn_scalar",
                                          "sliding_window",
                                          "full_attention_every",
                                          "attention_sinks",
                                          "attention_soft_cap",
                                          "logit_soft_cap",
                                          "output_bias",
                                          "experts",
                                          "experts_per_token",
                                          "expert_d_ff",
                                          "expert_biases",
                                          "normalized_weights",
                                          "shared_d_ff",
                                          "first_dense_layers",
                                          "weights_factor",
                                          "kv_lora_rank",
                                          "q_lora_rank",
                                          "qk_nope_head_dim",
                                          "qk_rope_head_dim",
                                          "v_head_dim",
                                          "rope_mscale_all_dim",
                                          "unit_alpha",
                                          "unit_limit",
                                          "unit_offset"};

constexpr bool is_decided(std::string_view name) {
  return std::find(std::begin(decided), std::end(decided), name) != std::end(decided);
}

// One of `decided`: another name does not compile.
class DecidedParam {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a literal stands for it
  consteval DecidedParam(const char* name) : name_(name) {
    if (!is_decided(name)) throw "the name is missing in `decided`";
  }
  const char* name() const { return name_; }

 private:
  const char* name_;
};

}  // namespace assay::host::experiment
