// The parameter table of the workload, and what one case makes of it.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/train/optimizer_params.hpp>

#include "shards.hpp"

namespace sharded_optimizer {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::DecoderTrainerConfig trainer;
  Variant variant;
  bool shares_matrices = false;  // whole, among the ranks: matrix_shares.hpp
  bool graph = false;
  // As BucketOptions has it. Buckets of whole matrices end where groups of parameters do.
  std::int64_t bucket_multiple() const { return shares_matrices ? 0 : trainer.arena_multiple; }
  std::int32_t left_multiprocessors = 0;
  assay::parallel::WithGathers<assay::parallel::CommunicationSettings> communication;
};

using assay::Param;
inline constexpr auto params = assay::join(
    assay::table(Param::choice("variant", Variant::zero1, variants)
                     .help("who keeps optimizer state: baseline: every rank all of it; broadcast: each rank a part of "
                           "the parameters, which it sends to the others; zero1: each rank a part of every bucket")),
    assay::models::model_params, assay::parallel::rank_precision_params, assay::parallel::rank_execution_params,
    assay::models::attention_params, assay::models::checkpointing_params, assay::models::accumulation_params,
    assay::train::optimizer_params, assay::parallel::product_params, assay::parallel::gather_params,
    assay::parallel::communication_params);

}  // namespace sharded_optimizer
