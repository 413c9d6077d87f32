// The parameter table of the workload, and what one case makes of it.
#pragma once
#include <assay/plugin.hpp>

#include <assay/train/decoder_params.hpp>

#include "shards.hpp"

namespace sharded_optimizer {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::train::DecoderTrainerConfig trainer;
  Variant variant;
  assay::train::CommunicationSettings communication;
};

using assay::Param;
inline constexpr auto params = assay::train::join(
    assay::table(Param::choice("variant", Variant::zero1, variants)
                     .help("who keeps optimizer state: baseline: every rank all of it; broadcast: each rank a part of "
                           "the parameters, which it sends to the others; zero1: each rank a part of every bucket")),
    assay::train::model_params, assay::train::rank_precision_params, assay::train::attention_params,
    assay::train::checkpointing_params, assay::train::optimizer_params, assay::train::communication_params);

}  // namespace sharded_optimizer
