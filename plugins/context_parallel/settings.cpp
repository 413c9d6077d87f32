#include "settings.hpp"

namespace context_parallel {

namespace {

assay::models::DecoderTrainerConfig with_own_chunks(const assay::Case& c) {
  assay::models::DecoderTrainerConfig config = assay::models::decoder_trainer_config(c);
  config.model.context = {.rank = c.rank(), .ranks = c.rank_count()};
  config.model.validate();
  config.data_rank = 0, config.data_ranks = 1;  // all ranks have parts of the same sequences
  return config;
}

}  // namespace

Settings::Settings(const assay::Case& c)
    : trainer(with_own_chunks(c)),
      graph(assay::workload::is_graph(c)),
      bucket_bytes(static_cast<std::size_t>(c.get<double>("bucket_mb") * 0x1p20)),
      collectives(c) {}

}  // namespace context_parallel
