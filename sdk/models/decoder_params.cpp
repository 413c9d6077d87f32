#include "assay/models/decoder_params.hpp"

#include <assay/models/dimensions.hpp>
#include <assay/train/optimizer_params.hpp>

namespace assay::models {

DecoderConfig decoder_config(const Case& c, const char* decided_by) {
  require_dimensions(c, decided_by, {"d_model", "d_ff", "layers", "heads"});
  DecoderConfig model;
  model.d_model = c.get<std::int64_t>("d_model");
  model.d_ff = c.get<std::int64_t>("d_ff");
  model.layers = c.get<std::int64_t>("layers");
  model.heads = c.get<std::int64_t>("heads");
  model.kv_heads = c.get<std::int64_t>("kv_heads");
  model.head_dim = c.get<std::int64_t>("head_dim");
  model.qkv_bias = c.get<bool>("qkv_bias");
  model.output_bias = c.get<bool>("output_bias");
  model.tied_embeddings = c.get<bool>("tied_embeddings");
  model.rope_theta = c.get<double>("rope_theta");
  model.norm_eps = c.get<double>("norm_eps");
  model.sliding_window = c.get<std::int64_t>("sliding_window");
  model.full_attention_every = c.get<std::int64_t>("full_attention_every");
  model.attention_sinks = c.get<bool>("attention_sinks");
  model.attention_soft_cap = c.get<double>("attention_soft_cap");
  model.vocab_size = c.get<std::int64_t>("vocab_size");
  model.batch_size = c.get<std::int64_t>("batch_size");
  model.context_length = c.get<std::int64_t>("context_length");
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

DecoderTrainerConfig decoder_trainer_config(const Case& c) {
  DecoderTrainerConfig config;
  config.model = decoder_config(c);
  config.model.validate();
  config.optimizer = train::optimizer_config(c);
  config.seed = c.seed();
  config.data_rank = c.rank();
  config.data_ranks = c.rank_count();
  return config;
}

}  // namespace assay::models
