// The ddp workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/train/decoder_params.hpp>
#include <assay/train/gradient_average.hpp>

namespace ddp {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::train::DecoderTrainerConfig trainer;
  assay::train::Strategy strategy;
  assay::train::CommunicationSettings communication;
};

using assay::Param;
inline constexpr auto params = assay::train::join(
    assay::table(Param::choice("strategy", assay::train::Strategy::overlap_bucketed, assay::train::strategies)
                     .help("when and in what pieces gradients are averaged. naive: one blocking "
                           "all-reduce for each parameter after backward; flat: one for all of them "
                           "after backward; overlap_individual: one for each parameter, started as "
                           "soon as backward has made it; overlap_bucketed: the same by buckets")),
    assay::train::model_params, assay::train::rank_precision_params, assay::train::attention_params,
    assay::train::checkpointing_params, assay::train::optimizer_params, assay::train::communication_params);

}  // namespace ddp
