// The context_parallel workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/models/decoder_params.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/train/optimizer_params.hpp>
#include <cstddef>

namespace context_parallel {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::DecoderTrainerConfig trainer;  // with this rank's chunks; the batch is that of all ranks
  bool graph;
  std::size_t bucket_bytes;
  assay::parallel::CollectiveSettings collectives;
};

inline constexpr auto params = assay::join(
    assay::models::shared_model_params, assay::models::accumulation_params, assay::parallel::rank_precision_params,
    assay::parallel::rank_execution_params, assay::models::attention_params, assay::models::checkpointing_params,
    assay::train::optimizer_params, assay::parallel::bucket_params, assay::parallel::collective_params);

}  // namespace context_parallel
