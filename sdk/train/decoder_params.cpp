#include "assay/train/decoder_params.hpp"

#include <algorithm>

namespace assay::train {
namespace {

struct Size {
  const char* name;
  std::int64_t d_model, d_ff, layers, heads;
};
constexpr std::array<Size, size_names.size()> sizes{{{"tiny", 128, 512, 2, 4},
                                                     {"small", 768, 3072, 12, 12},
                                                     {"medium", 1024, 4096, 24, 16},
                                                     {"large", 1280, 5120, 36, 20},
                                                     {"xl", 1600, 6400, 48, 25},
                                                     {"2.7B", 2560, 10240, 32, 32}}};

}  // namespace

DecoderConfig decoder_config(const Case& c) {
  const auto size_name = c.get<std::string_view>("size");
  const Size& size = *std::find_if(sizes.begin(), sizes.end(), [&](const Size& s) { return s.name == size_name; });
  const auto or_size = [&](const char* key, std::int64_t of_size) {
    const auto given = c.get<std::int64_t>(key);
    return given > 0 ? given : of_size;
  };
  DecoderConfig model;
  model.d_model = or_size("d_model", size.d_model);
  model.d_ff = or_size("d_ff", size.d_ff);
  model.layers = or_size("layers", size.layers);
  model.heads = or_size("heads", size.heads);
  model.vocab_size = c.get<std::int64_t>("vocab_size");
  model.batch_size = c.get<std::int64_t>("batch_size");
  model.context_length = c.get<std::int64_t>("context_length");
  model.precision = precision_policy(c.get<std::string_view>("precision"), c.device_kind());
  model.flash = c.get<std::string_view>("attention") == "flash";
  model.checkpointing = c.get<bool>("activation_checkpointing");
  return model;
}

OptimizerConfig optimizer_config(const Case& c) {
  OptimizerConfig optimizer;
  // The table's own text, which is static: the config keeps a view.
  optimizer.name = *std::find(optimizer_names.begin(), optimizer_names.end(), c.get<std::string_view>("optimizer"));
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
      bucket_bytes(c.get<std::size_t>("bucket_mb") << 20) {}

}  // namespace assay::train
