// The tensor_parallel workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/train/optimizer_params.hpp>

namespace tensor_parallel {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::DecoderTrainerConfig trainer;  // of this rank's part of the model; the batch is that of all ranks
  bool graph;
  assay::parallel::CollectiveSettings collectives;
};

using assay::Param;
inline constexpr auto params = assay::join(
    assay::table(Param::boolean("sequence_parallel", true)
                     .help("true: a rank has the norms and the residual stream of its part of the rows, which are "
                           "gathered before a product and summed to parts after it; false: of all rows, and sums are "
                           "made everywhere")),
    assay::models::shared_model_params, assay::parallel::rank_precision_params, assay::parallel::rank_execution_params,
    assay::models::attention_params, assay::models::checkpointing_params, assay::models::accumulation_params,
    assay::train::optimizer_params, assay::parallel::collective_params);

}  // namespace tensor_parallel
