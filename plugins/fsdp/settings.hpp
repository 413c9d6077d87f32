// The fsdp workload's parameter table, and what one case makes of it.
#pragma once
#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/parallel/sharded_blocks.hpp>
#include <assay/train/optimizer_params.hpp>

namespace fsdp {

struct Settings {
  explicit Settings(const assay::Case& c);  // throws assay::Error

  assay::models::DecoderTrainerConfig trainer;
  assay::parallel::ShardedBlocks::Options blocks;
  bool graph;
  std::int32_t left_multiprocessors = 0;
  assay::parallel::WithGathers<assay::parallel::CollectiveSettings> collectives;
};

using assay::Param;
inline constexpr auto params = assay::join(
    assay::table(Param::boolean("reshard", true)
                     .help("true: a block's parameters are given up after its forward and gathered again for its "
                           "backward (ZeRO 3); false: they stay until then (ZeRO 2)"),
                 Param::boolean("sync_every_micro_batch", true)
                     .help("of accumulation_steps: true: each micro-batch's gradients are reduced to the ranks' parts, "
                           "and added up there; false: whole gradients are kept and added up, and reduced with the "
                           "last one")),
    assay::models::model_params, assay::parallel::rank_precision_params,
    assay::parallel::rank_execution_params_from<assay::workload::Execution::graph>, assay::models::attention_params,
    assay::models::checkpointing_params, assay::models::accumulation_params, assay::train::optimizer_params,
    assay::parallel::product_params, assay::parallel::gather_params, assay::parallel::collective_params);

}  // namespace fsdp
