// How the ranks of a mesh share the training of one decoder, as a value: what is partitioned, which exchanges a step
// has, and when. A plugin makes it of a case's parameters; decoder_ranks.hpp carries it out.
#pragma once
#include <assay/mesh/axes.hpp>
#include <assay/models/attention_params.hpp>
#include <assay/models/decoder_params.hpp>
#include <assay/parallel/communication_params.hpp>
#include <assay/parallel/gradient_average.hpp>
#include <assay/parallel/sharded_blocks.hpp>
#include <assay/parallel/sharded_update.hpp>
#include <assay/train/optimizer_params.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace assay::mesh {

// What the ranks have parts of, beside the batch.
enum class Shares {
  nothing,  // each has the whole model
  blocks,   // of parameters, which come and go, with their gradients and their optimizer state
  columns,  // and rows of matrices: products are split (trainer.model.split)
  tokens,   // of each sequence (trainer.model.context)
  stages,   // layers, one behind the other (trainer.model.stages)
};

// Gradients that every rank has whole meet in collectives of their arena.
struct GradientMeeting {
  comm::Reduction reduction = comm::Reduction::average;
  parallel::AverageMode when = parallel::AverageMode::overlap_bucketed;
  std::size_t bucket_bytes = 0;  // 0: chosen by measuring in set-up
  std::size_t last_bucket_bytes = 0;
};

// The record has this of the ranks' last losses. A sum over replicas is divided by their number, unless the losses are
// terms of one mean (trainer.has_terms()).
enum class ReportedLoss { of_rank, mean_of_ranks, sum_of_ranks };

struct Strategy {
  models::DecoderTrainerConfig trainer;  // of what this rank has
  Shares shares = Shares::nothing;
  Axes axes = {};                                // of all but ranks that share nothing
  parallel::ShardedBlocks::Options blocks = {};  // of Shares::blocks
  std::optional<GradientMeeting> gradients = {};
  std::optional<parallel::ShardedUpdate::Options> update = {};  // by parts of the parameters
  bool begins_from_rank_0 = false;                              // its weights are broadcast before the first step
  ReportedLoss loss = ReportedLoss::of_rank;
  bool memory_moments = false;            // of set-up, and after a step
  bool graph = false;                     // a step is captured
  std::int32_t left_multiprocessors = 0;  // by products of a backward beside collectives
  parallel::CollectiveSettings collectives = {};
  std::optional<parallel::Gathers> gathers = parallel::Gathers::any_memory;  // empty: measured in set-up
};

// Throws assay::Error(INTERNAL) for a strategy that leaves ranks without an exchange, or has two of one kind:
//   nothing  gradients, or update; the whole model's gradients meet on every rank, or in parts
//   blocks   neither; the blocks exchange both
//   columns  neither; what every rank has is summed at the end of backward
//   tokens   gradients, which are terms of a sum
//   stages   neither; each parameter is one rank's
// All but the first may have replicas, whose ranks average their gradients in any case. Of tokens the sum is that over
// the ranks of all replicas, of terms of one mean (trainer.has_terms()).
// Only what is gathered, of blocks or by an update, has a choice of memory.
void validate(const Strategy& strategy);

// The parameters that such workloads have alike, behind those of their strategy. `model`: model_params, or
// shared_model_params of ranks that share a batch. `optimizer`: optimizer_params where a rank that updates a matrix
// has all of it, or else elementwise_optimizer_params.
template <class Model, class Execution, class Optimizer>
constexpr auto decoder_params(const Model& model, const Execution& execution, const Optimizer& optimizer) {
  return join(model, parallel::rank_precision_params, execution, models::attention_params, models::checkpointing_params,
              models::accumulation_params, optimizer);
}

// Reads them: what a rank has that shares the batch alone. Throws assay::Error.
inline models::DecoderTrainerConfig decoder_config(
    const Case& c, train::WholeMatrixOptimizers of_matrices = train::WholeMatrixOptimizers::refused) {
  models::DecoderTrainerConfig config = models::decoder_trainer_config(c, of_matrices);
  config.model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  return config;
}

// The configuration of a rank that has a part of the model, or of its sequences: all ranks of a replica have one batch.
// Validates it.
inline models::DecoderTrainerConfig of_one_batch(const Case& c, models::DecoderTrainerConfig config,
                                                 const Axes& axes = {}) {
  config.model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  models::validate_decoder(c, config.model);
  config.data_rank = axes.replica, config.data_ranks = axes.replicas;
  return config;
}

}  // namespace assay::mesh
