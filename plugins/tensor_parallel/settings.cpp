#include "settings.hpp"

namespace tensor_parallel {

namespace {

assay::models::DecoderTrainerConfig split_config(const assay::Case& c) {
  assay::models::DecoderTrainerConfig config = assay::models::decoder_trainer_config(c);
  config.model.split = {
      .rank = c.rank(), .ranks = c.rank_count(), .sequence_parallel = c.get<bool>("sequence_parallel")};
  config.model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  assay::models::validate_decoder(c, config.model);
  config.data_rank = 0, config.data_ranks = 1;  // of one batch no rank has a part
  return config;
}

}  // namespace

Settings::Settings(const assay::Case& c)
    : trainer(split_config(c)), graph(assay::workload::is_graph(c)), collectives(c) {}

}  // namespace tensor_parallel
