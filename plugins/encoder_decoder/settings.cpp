#include "settings.hpp"

#include <assay/models/attention_params.hpp>
#include <assay/models/dimensions.hpp>
#include <assay/train/optimizer_params.hpp>

namespace encoder_decoder {
namespace {

constexpr std::int64_t quick_samples = 10'240;
constexpr std::int64_t full_bytes = 30'000'000'000;

const char* precision_of(Amp amp, std::string_view device_kind) {
  if (amp == Amp::automatic) return device_kind == "cuda" ? "fp16" : "fp32";
  if (amp == Amp::fp16 && device_kind != "cuda")
    throw assay::Error(ASSAY_UNSUPPORTED, "amp \"fp16\" needs device \"cuda\"; device \"" + std::string(device_kind) +
                                              "\" has amp \"bf16\" and \"off\", and \"auto\" is off there");
  return amp == Amp::off ? "fp32" : amp == Amp::fp16 ? "fp16" : "bf16";
}

assay::models::EncoderDecoderConfig model_of(const assay::Case& c, std::string_view precision) {
  assay::models::require_dimensions(
      c, "preset", {"d_model", "heads", "encoder_layers", "decoder_layers", "d_ff", "sequence_length", "batch_size"});
  assay::models::EncoderDecoderConfig model;
  model.d_model = c.get<std::int64_t>("d_model");
  model.heads = c.get<std::int64_t>("heads");
  model.encoder_layers = c.get<std::int64_t>("encoder_layers");
  model.decoder_layers = c.get<std::int64_t>("decoder_layers");
  model.d_ff = c.get<std::int64_t>("d_ff");
  model.sequence_length = c.get<std::int64_t>("sequence_length");
  model.batch_size = c.get<std::int64_t>("batch_size");
  model.vocab_size = c.get<std::int64_t>("vocab_size");
  model.dropout = c.get<float>("dropout");
  model.dropout_seed = c.seed() + static_cast<std::uint64_t>(c.rank());
  model.precision = assay::workload::precision_policy(precision, c.device_kind());
  model.fused = assay::workload::is_graph(c);
  model.flash = c.choice("attention", assay::models::attention_paths) == assay::models::AttentionPath::flash;
  model.validate();
  return model;
}

DataSettings data_of(const assay::Case& c, const assay::models::EncoderDecoderConfig& model) {
  DataSettings data;
  data.dataset.shape = {model.sequence_length, model.vocab_size};
  data.dataset.seed = c.seed();
  data.dataset.shards = c.get<std::int64_t>("num_shards");
  data.dataset.samples = c.get<std::int64_t>("num_samples");
  const Dataset dataset = c.choice("dataset", datasets);
  if (data.dataset.samples > 0 && dataset == Dataset::full)
    c.host().warn("dataset = \"full\" has no effect: num_samples = " + std::to_string(data.dataset.samples) +
                  " says how many samples there are; set num_samples = 0 for the full set");
  if (data.dataset.samples == 0)
    data.dataset.samples =
        dataset == Dataset::quick ? quick_samples : full_bytes / static_cast<std::int64_t>(data.dataset.shape.bytes());
  const std::int64_t in_step = model.batch_size * c.rank_count();
  // Known here, before a data set is written that cannot be used.
  if (data.dataset.samples < in_step)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "num_samples " + std::to_string(data.dataset.samples) + " is less than one step takes, " +
                           std::to_string(in_step) + " (batch_size " + std::to_string(model.batch_size) + " on " +
                           std::to_string(c.rank_count()) + (c.rank_count() == 1 ? " rank" : " ranks") +
                           "); take more samples, or a smaller batch_size");
  data.folder = c.get<std::string>("data_dir");
  data.loader.batch_size = model.batch_size;
  data.loader.rank = c.rank();
  data.loader.ranks = c.rank_count();
  data.loader.workers = c.get<int>("workers");
  data.loader.prefetch = c.get<std::int64_t>("prefetch");
  data.loader.shuffle = c.get<bool>("shuffle");
  data.loader.seed = c.seed();
  return data;
}

}  // namespace

Settings::Settings(const assay::Case& c)
    : communication(c),
      precision(precision_of(c.choice("amp", amps), c.device_kind())),
      unit(c.choice("unit", units)),
      ranks(c.rank_count()) {
  trainer.model = model_of(c, precision);
  trainer.optimizer = assay::train::optimizer_config(c);
  trainer.seed = c.seed();
  trainer.weights_file = c.get<std::string>("weights");
  data = data_of(c, trainer.model);
}

}  // namespace encoder_decoder
