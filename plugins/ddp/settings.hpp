// The ddp workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/parallel/gradient_average.hpp>
#include <assay/train/optimizer_params.hpp>

namespace ddp {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::DecoderTrainerConfig trainer;
  assay::parallel::Strategy strategy;
  bool graph = false;
  std::int32_t left_multiprocessors = 0;
  assay::parallel::CommunicationSettings communication;
};

using assay::Param;
inline constexpr auto params = assay::join(
    assay::table(Param::choice("strategy", assay::parallel::Strategy::overlap_bucketed, assay::parallel::strategies)
                     .help("when and in what pieces gradients are averaged. naive: one blocking "
                           "all-reduce for each parameter after backward; flat: one for all of them "
                           "after backward; overlap_individual: one for each parameter, started as "
                           "soon as backward has made it; overlap_bucketed: the same by buckets")),
    assay::models::model_params, assay::parallel::rank_precision_params, assay::parallel::rank_execution_params,
    assay::models::attention_params, assay::models::checkpointing_params, assay::models::accumulation_params,
    assay::train::optimizer_params, assay::parallel::product_params, assay::parallel::measured_communication_params);

}  // namespace ddp
