#include "assay/train/decoder_params.hpp"

#include <cmath>

namespace assay::train {
DecoderConfig decoder_config(const Case& c) {
  DecoderConfig model;
  model.d_model = c.get<std::int64_t>("d_model");
  model.d_ff = c.get<std::int64_t>("d_ff");
  model.layers = c.get<std::int64_t>("layers");
  model.heads = c.get<std::int64_t>("heads");
  model.vocab_size = c.get<std::int64_t>("vocab_size");
  model.batch_size = c.get<std::int64_t>("batch_size");
  model.context_length = c.get<std::int64_t>("context_length");
  model.precision = precision_policy(c.get<std::string_view>("precision"), c.device_kind());
  model.flash = c.choice("attention", attention_paths) == AttentionPath::flash;
  model.checkpointing = c.get<bool>("activation_checkpointing");
  return model;
}

OptimizerConfig optimizer_config(const Case& c) {
  OptimizerConfig optimizer;
  optimizer.name = c.choice("optimizer", optimizer_names);  // the config keeps a view
  optimizer.lr = c.get<double>("lr");
  return optimizer;
}

DecoderTrainerConfig decoder_trainer_config(const Case& c) {
  DecoderTrainerConfig config;
  config.model = decoder_config(c);
  config.model.validate();
  config.optimizer = optimizer_config(c);
  config.seed = c.seed();
  config.rank = c.rank();
  config.ranks = c.rank_count();
  return config;
}

CommunicationSettings::CommunicationSettings(const Case& c)
    : library(c.get<std::string>("comm")),
      options{.max_channels = c.get<std::int32_t>("max_channels")},
      bucket_bytes(static_cast<std::size_t>(std::llround(c.get<double>("bucket_mb") * 0x1p20))) {}

}  // namespace assay::train
