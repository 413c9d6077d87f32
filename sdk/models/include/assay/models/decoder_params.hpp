// Rows of the parameter tables that workloads around the decoder share, and what a case's values make of them. A
// workload's table is join(model_params, its own rows, ...), or of shared_model_params.
#pragma once
#include <assay/plugin.hpp>

#include <algorithm>
#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_trainer.hpp>
#include <assay/models/document_params.hpp>
#include <assay/train/optimizer_params.hpp>
#include <span>
#include <string_view>

namespace assay::models {

struct DecoderSize {
  const char* name;
  std::int64_t d_model, d_ff, layers, heads;
};
inline constexpr std::array<DecoderSize, 6> decoder_sizes{{{"tiny", 128, 512, 2, 4},
                                                           {"small", 768, 3072, 12, 12},
                                                           {"medium", 1024, 4096, 24, 16},
                                                           {"large", 1280, 5120, 36, 20},
                                                           {"xl", 1600, 6400, 48, 25},
                                                           {"2.7B", 2560, 10240, 32, 32}}};
// As rope_scaling_params has it; a model without a scaling has no rows of it.
struct PublicRopeScaling {
  const char* kind = "none";
  double factor = 1;
  std::int64_t original_context = 0;
  double low = 1, high = 4;
};
// What sets Gemma's blocks apart; a model without them has no rows of it.
struct PublicGemma {
  double query_pre_attn_scalar = 0;
  std::int64_t sliding_window = 0, full_attention_every = 0;
  double rope_local_theta = 0;
  double attention_soft_cap = 0, logit_soft_cap = 0;  // both or none
};
// Models that people train, as their published configurations have them: grouped-query attention, a large vocabulary,
// and what else sets them apart from the sizes above.
struct PublicModel {
  DecoderSize size;
  std::int64_t kv_heads, vocab_size;
  std::int64_t head_dim = 0;
  bool qkv_bias = false, qk_norm = false, tied_embeddings = false;
  double rope_theta = 1e4, norm_eps = 1e-5;
  PublicRopeScaling rope_scaling = {};
  PublicGemma gemma = {};
  constexpr bool is_gemma() const { return gemma.query_pre_attn_scalar > 0; }
  constexpr bool scales_rotation() const { return std::string_view(rope_scaling.kind) != "none"; }
};
inline constexpr std::size_t public_model_settings = 12;  // that a row says, those of its size among them
inline constexpr auto public_models = std::to_array<PublicModel>({
    {.size = {"qwen2.5-0.5b", 896, 4864, 24, 14},
     .kv_heads = 2,
     .vocab_size = 151'936,
     .qkv_bias = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"qwen2.5-1.5b", 1536, 8960, 28, 12},
     .kv_heads = 2,
     .vocab_size = 151'936,
     .qkv_bias = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"qwen2.5-3b", 2048, 11008, 36, 16},
     .kv_heads = 2,
     .vocab_size = 151'936,
     .qkv_bias = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"qwen2.5-7b", 3584, 18944, 28, 28},
     .kv_heads = 4,
     .vocab_size = 152'064,
     .qkv_bias = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"qwen3-0.6b", 1024, 3072, 28, 16},
     .kv_heads = 8,
     .vocab_size = 151'936,
     .head_dim = 128,
     .qk_norm = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"qwen3-1.7b", 2048, 6144, 28, 16},
     .kv_heads = 8,
     .vocab_size = 151'936,
     .head_dim = 128,
     .qk_norm = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"qwen3-4b", 2560, 9728, 36, 32},
     .kv_heads = 8,
     .vocab_size = 151'936,
     .head_dim = 128,
     .qk_norm = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"qwen3-8b", 4096, 12288, 36, 32},
     .kv_heads = 8,
     .vocab_size = 151'936,
     .head_dim = 128,
     .qk_norm = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6},
    {.size = {"llama3-8b", 4096, 14336, 32, 32}, .kv_heads = 8, .vocab_size = 128'256, .rope_theta = 5e5},
    {.size = {"llama3.1-8b", 4096, 14336, 32, 32},
     .kv_heads = 8,
     .vocab_size = 128'256,
     .rope_theta = 5e5,
     .rope_scaling = {"llama3", 8, 8192}},
    {.size = {"llama3.2-1b", 2048, 8192, 16, 32},
     .kv_heads = 8,
     .vocab_size = 128'256,
     .tied_embeddings = true,
     .rope_theta = 5e5,
     .rope_scaling = {"llama3", 32, 8192}},
    {.size = {"llama3.2-3b", 3072, 8192, 28, 24},
     .kv_heads = 8,
     .vocab_size = 128'256,
     .tied_embeddings = true,
     .rope_theta = 5e5,
     .rope_scaling = {"llama3", 32, 8192}},
    {.size = {"gemma2-2b", 2304, 9216, 26, 8},
     .kv_heads = 4,
     .vocab_size = 256'000,
     .head_dim = 256,
     .tied_embeddings = true,
     .norm_eps = 1e-6,
     .gemma = {256, 4096, 2, 0, 50, 30}},
    {.size = {"gemma3-1b", 1152, 6912, 26, 4},
     .kv_heads = 1,
     .vocab_size = 262'144,
     .head_dim = 256,
     .qk_norm = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6,
     .gemma = {256, 512, 6, 1e4}},
    {.size = {"gemma3-4b", 2560, 10240, 34, 8},  // its language model
     .kv_heads = 4,
     .vocab_size = 262'208,
     .head_dim = 256,
     .qk_norm = true,
     .tied_embeddings = true,
     .rope_theta = 1e6,
     .norm_eps = 1e-6,
     .rope_scaling = {"linear", 8},
     .gemma = {256, 1024, 6, 1e4}},
});
// The size of a model that takes its dimensions from its config_file.
inline constexpr const char* of_config_file = "config_file";
inline constexpr auto size_names = std::apply(
    [](const auto&... size) {
      return std::apply([&](const auto&... model) { return names(size.name..., model.size.name..., of_config_file); },
                        public_models);
    },
    decoder_sizes);
// Frequencies of the rotation for more positions than a model was first trained with (rotary_scaling.hpp).
inline constexpr auto rope_scalings =
    choices<compute::RotaryScalingKind>({{"none", compute::RotaryScalingKind::none},
                                         {"linear", compute::RotaryScalingKind::linear},
                                         {"llama3", compute::RotaryScalingKind::llama3},
                                         {"yarn", compute::RotaryScalingKind::yarn}});
inline constexpr auto rope_scaling_params = table(
    Param::choice("rope_scaling", compute::RotaryScalingKind::none, rope_scalings)
        .help("how the rotation's frequencies change for more positions than the model was first trained with"),
    Param::real("rope_factor", 1).at_least(1).at_most(1e6).help("rope_scaling: what slow frequencies are divided by"),
    Param::integer("rope_original_context", 0)
        .at_least(0)
        .at_most(1 << 30)
        .unit("tokens")
        .help("rope_scaling = llama3, yarn: positions that the model was first trained with, which it needs"),
    Param::real("rope_low_freq_factor", 1)
        .at_least(0)
        .at_most(1e6)
        .help("llama3: pairs of fewer turns in the original context are divided by the whole factor"),
    Param::real("rope_high_freq_factor", 4)
        .at_least(0)
        .at_most(1e6)
        .help("llama3: pairs of more turns in the original context stay as they are"),
    Param::real("rope_beta_fast", 32)
        .at_least(0)
        .at_most(1e6)
        .help("yarn: pairs of more turns in the original context stay as they are"),
    Param::real("rope_beta_slow", 1)
        .at_least(0)
        .at_most(1e6)
        .help("yarn: pairs of fewer turns in the original context are divided by the whole factor"),
    Param::boolean("rope_truncate", true)
        .help("yarn: the range between both begins and ends with whole pairs, the next ones outwards"),
    Param::real("rope_attention_factor", 0)
        .at_least(0)
        .at_most(1e3)
        .help("yarn: what cosines and sines are multiplied by; 0: 1 + 0.1 ln(rope_factor)"),
    Param::real("rope_mscale_all_dim", 0)
        .at_least(0)
        .at_most(1e3)
        .help("yarn, latent attention: scores are multiplied by the square of 1 + 0.1 rope_mscale_all_dim "
              "ln(rope_factor), unless it is 0"));
// Keys and values that are made of a latent (DeepSeek-V2, V3), by the names of the published configurations.
inline constexpr auto latent_params =
    table(Param::integer("kv_lora_rank", 0)
              .at_least(0)
              .at_most(1 << 16)
              .help("columns of the latent that keys and values are made of (latent attention); 0: there is none"),
          Param::integer("q_lora_rank", 0)
              .at_least(0)
              .at_most(1 << 16)
              .help("kv_lora_rank: columns of the latent that queries are made of; 0: they are a product of the token"),
          Param::integer("qk_nope_head_dim", 0)
              .at_least(0)
              .at_most(1 << 16)
              .help("kv_lora_rank: columns of a head's query and key that are not rotated"),
          Param::integer("qk_rope_head_dim", 0)
              .at_least(0)
              .at_most(1 << 16)
              .help("kv_lora_rank: columns behind them that are, even; all heads share those of keys"),
          Param::integer("v_head_dim", 0).at_least(0).at_most(1 << 16).help("kv_lora_rank: columns of a head's value"));
// How blocks differ between families of models.
inline constexpr auto gate_activations =
    choices<compute::Activation>({{"silu", compute::Activation::silu}, {"gelu_tanh", compute::Activation::gelu_tanh}});
inline constexpr auto block_params = table(
    Param::boolean("post_norms", false)
        .help("each branch ends with its own norm, before it is added to the residual stream (Gemma)"),
    Param::boolean("norms_from_one", false).help("a norm multiplies by 1 + its weight, which starts from 0 (Gemma)"),
    Param::choice("gate_activation", compute::Activation::silu, gate_activations)
        .help("of the feed-forward's gate; gelu_tanh: GELU in its form by tanh (Gemma)"),
    Param::boolean("scaled_embeddings", false).help("embeddings are multiplied by the root of d_model (Gemma)"),
    Param::real("query_pre_attn_scalar", 0)
        .at_least(0)
        .at_most(1 << 16)
        .help("scores are divided by its root; 0: by that of head_dim"),
    Param::real("rope_local_theta", 0)
        .at_least(0)
        .help("base of the rotation, without a scaling, of layers beside those that see everything; 0: as of all "
              "others"));
// The dimensions that `size` presets; a workload with other presets replaces this by its own choice.
inline constexpr auto presets_dimensions = join(
    table(Param::integer("d_model", 0)
              .at_least(0)
              .at_most(1 << 20)
              .help("width of the residual stream; absent: as the preset says"),
          Param::integer("d_ff", 0).at_least(0).at_most(1 << 22).help(
              "width of the feed-forward; absent: as the preset says"),
          Param::integer("layers", 0).at_least(0).at_most(4096).help("number of blocks; absent: as the preset says"),
          Param::integer("heads", 0)
              .at_least(0)
              .at_most(4096)
              .help("attention heads, a divisor of d_model unless head_dim is given; absent: as the preset says"),
          Param::integer("kv_heads", 0)
              .at_least(0)
              .at_most(4096)
              .help("heads of keys and values, a divisor of heads; 0: as many as heads, where the preset gives nothing "
                    "else"),
          Param::integer("head_dim", 0)
              .at_least(0)
              .at_most(1 << 16)
              .help("columns of a head, even; 0: d_model / heads, where the preset gives nothing else"),
          Param::boolean("qkv_bias", false).help("the products of query, key and value add a bias"),
          Param::boolean("qk_norm", false)
              .help("each head of queries and of keys is normed (RMSNorm) before its rotation"),
          Param::boolean("output_bias", false).help("the product behind attention adds a bias"),
          Param::boolean("tied_embeddings", false).help("the output head's weights are the embedding's"),
          Param::real("rope_theta", 1e4).at_least(1).help("base of the rotary position embedding's wavelengths"),
          Param::real("norm_eps", 1e-5).at_least(0).at_most(1).help("what RMSNorm adds to the mean square"),
          Param::integer("sliding_window", 0)
              .at_least(0)
              .at_most(1 << 20)
              .unit("tokens")
              .help("a token sees itself and the sliding_window - 1 before it; 0: all before it"),
          Param::integer("full_attention_every", 0)
              .at_least(0)
              .at_most(4096)
              .unit("layers")
              .help("the last of every so many layers sees all tokens before it whatever sliding_window; 0: none does"),
          Param::boolean("attention_sinks", false).help("each head has one more score, learned and without a value"),
          Param::real("attention_soft_cap", 0)
              .at_least(0)
              .at_most(workload::largest_fp32)
              .help("scores s become cap tanh(s / cap); 0: they stay"),
          Param::real("logit_soft_cap", 0)
              .at_least(0)
              .at_most(workload::largest_fp32)
              .help("logits x of the head become cap tanh(x / cap); 0: they stay"),
          Param::integer("vocab_size", 10'000).at_least(2).at_most(1 << 24).unit("tokens").help("vocabulary")),
    rope_scaling_params, block_params, latent_params);
inline constexpr auto dimension_params = join(
    table(
        Param::choice("size", "small", size_names)
            .help("model size; what it stands for (d_model, d_ff, layers, heads, ...) can be overridden one by one"),
        Param::input_path(of_config_file)
            .help(
                "in place of size: config.json of a published Llama, Qwen2, Qwen3 or Gemma model; what it says can be "
                "overridden one by one")),
    presets_dimensions);
constexpr auto batch_params(const char* help) {
  return table(Param::integer("batch_size", 4).at_least(1).at_most(1 << 20).unit("sequences").help(help));
}
inline constexpr auto sequence_params = join(
    table(
        Param::integer("context_length", 512).at_least(1).at_most(1 << 20).unit("tokens").help("tokens in a sequence"),
        Param::integer("loss_chunks", 1)
            .at_least(1)
            .at_most(1 << 20)
            .help("parts of the tokens whose logits are in memory at a time; more than 1: forward makes the head's "
                  "gradients")),
    document_params);
inline constexpr auto model_params =
    join(dimension_params, batch_params("sequences in a step, or a micro-batch of it, on each rank"), sequence_params);
// Of a model that the ranks of a replica share, and all of its batch.
inline constexpr auto shared_model_params =
    join(dimension_params, batch_params("sequences in a step, of each replica"), sequence_params);

// What each size stands for, to go with model_params and shared_model_params.
inline constexpr auto model_presets = [] {
  constexpr std::size_t scaled =
      std::count_if(public_models.begin(), public_models.end(), [](const auto& m) { return m.scales_rotation(); });
  constexpr std::size_t gemmas =
      std::count_if(public_models.begin(), public_models.end(), [](const auto& m) { return m.is_gemma(); });
  constexpr std::size_t capped = std::count_if(public_models.begin(), public_models.end(),
                                               [](const auto& m) { return m.gemma.logit_soft_cap > 0; });
  std::array<Preset, 4 * decoder_sizes.size() + public_model_settings * public_models.size() + 5 * scaled + 8 * gemmas +
                         2 * capped>
      presets{};
  std::size_t i = 0;
  const auto add_dimensions = [&](const DecoderSize& size) {
    presets[i++] = Preset::integer("size", size.name, "d_model", size.d_model);
    presets[i++] = Preset::integer("size", size.name, "d_ff", size.d_ff);
    presets[i++] = Preset::integer("size", size.name, "layers", size.layers);
    presets[i++] = Preset::integer("size", size.name, "heads", size.heads);
  };
  for (const DecoderSize& size : decoder_sizes) add_dimensions(size);
  for (const PublicModel& model : public_models) {
    add_dimensions(model.size);
    presets[i++] = Preset::integer("size", model.size.name, "kv_heads", model.kv_heads);
    presets[i++] = Preset::integer("size", model.size.name, "vocab_size", model.vocab_size);
    presets[i++] = Preset::integer("size", model.size.name, "head_dim", model.head_dim);
    presets[i++] = Preset::boolean("size", model.size.name, "qkv_bias", model.qkv_bias);
    presets[i++] = Preset::boolean("size", model.size.name, "qk_norm", model.qk_norm);
    presets[i++] = Preset::boolean("size", model.size.name, "tied_embeddings", model.tied_embeddings);
    presets[i++] = Preset::real("size", model.size.name, "rope_theta", model.rope_theta);
    presets[i++] = Preset::real("size", model.size.name, "norm_eps", model.norm_eps);
    if (model.is_gemma()) {
      for (const char* of : {"post_norms", "norms_from_one", "scaled_embeddings"})
        presets[i++] = Preset::boolean("size", model.size.name, of, true);
      presets[i++] = Preset::text("size", model.size.name, "gate_activation", "gelu_tanh");
      const PublicGemma& g = model.gemma;
      presets[i++] = Preset::real("size", model.size.name, "query_pre_attn_scalar", g.query_pre_attn_scalar);
      presets[i++] = Preset::integer("size", model.size.name, "sliding_window", g.sliding_window);
      presets[i++] = Preset::integer("size", model.size.name, "full_attention_every", g.full_attention_every);
      presets[i++] = Preset::real("size", model.size.name, "rope_local_theta", g.rope_local_theta);
      if (g.logit_soft_cap > 0) {
        presets[i++] = Preset::real("size", model.size.name, "attention_soft_cap", g.attention_soft_cap);
        presets[i++] = Preset::real("size", model.size.name, "logit_soft_cap", g.logit_soft_cap);
      }
    }
    if (!model.scales_rotation()) continue;
    const PublicRopeScaling& scaling = model.rope_scaling;
    presets[i++] = Preset::text("size", model.size.name, "rope_scaling", scaling.kind);
    presets[i++] = Preset::real("size", model.size.name, "rope_factor", scaling.factor);
    presets[i++] = Preset::integer("size", model.size.name, "rope_original_context", scaling.original_context);
    presets[i++] = Preset::real("size", model.size.name, "rope_low_freq_factor", scaling.low);
    presets[i++] = Preset::real("size", model.size.name, "rope_high_freq_factor", scaling.high);
  }
  return presets;
}();

// Who adds the residual stream to the end of a branch: the norm behind it, or the product that makes it.
enum class ResidualAdd { norm, product };
inline constexpr auto residual_adds =
    choices<ResidualAdd>({{"norm", ResidualAdd::norm}, {"product", ResidualAdd::product}});

inline constexpr auto checkpointing_params = table(
    Param::boolean("activation_checkpointing", false)
        .help("keep each block's input alone, recompute the rest in backward"),
    Param::boolean("keep_outputs", false)
        .help("keep what norms and SwiGLU make for backward, which otherwise makes it again: more memory, fewer "
              "bytes moved; fused, without activation_checkpointing, and not of fp8, which keeps 8 bits"),
    Param::choice("residual_add", ResidualAdd::norm, residual_adds)
        .help("what adds the residual stream to a branch, fused and not of fp8: the norm behind it, or the product "
              "that ends it"));

inline constexpr auto accumulation_params =
    table(Param::integer("accumulation_steps", 1)
              .at_least(1)
              .at_most(1 << 16)
              .help("micro-batches of batch_size sequences in a step, whose gradients are added up before the update"));

// Reads rope_scaling_params; INVALID_ARGUMENT that names the parameter where a kind lacks one, does not read one that
// is set, or cannot be meant. What a preset says of other kinds counts as left out.
compute::RotaryScaling rope_scaling(const Case& c, std::span<const Preset> presets = model_presets);

// Reads model_params (or shared_model_params) and the rows `precision`, `attention` and checkpointing_params; the
// result has a backward and is fused. It is not yet validated. Throws assay::Error.
// `decided_by`: the choice whose presets, or whose config_file, decide the dimensions.
DecoderConfig decoder_config(const Case& c, const char* decided_by = "size",
                             std::span<const Preset> presets = model_presets);
// Throws what the configuration's validate() throws, with the preset or the file beside it whose values the experiment
// does not show.
void validate_decoder(const Case& c, const DecoderConfig& config, const std::string& decided_by = "size");
// Throws INVALID_ARGUMENT where `setting` is set for a model that execution = "eager" made of unfused operations.
void require_fused(const DecoderConfig& config, const std::string& setting, bool is_set);
// Reads all three, with the case's seed and its rank's part of the batch; the result is validated.
DecoderTrainerConfig decoder_trainer_config(
    const Case& c, train::WholeMatrixOptimizers of_matrices = train::WholeMatrixOptimizers::refused);

}  // namespace assay::models
