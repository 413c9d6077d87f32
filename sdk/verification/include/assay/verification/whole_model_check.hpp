// Was the timed work the training of the whole decoder, if the ranks share it? Each rank holds the whole model beside
// its part, and computes it without communication. Each question builds on the one before it:
//   after the last step, whichever kind it was: are loss and gradients finite;
//   does each rank train on its part of the batch, and start from pieces of the whole model's weights;
//   are the loss, as it is reported, and the gradients that a timed step leaves those of the whole model: of ranks that
//     share one batch its gradients, by parts; of ranks with a batch each the mean of what their whole models compute,
//     in every element;
//   do three steps, as they are timed, move what each rank has, weights and moments, as float64 has it;
//   is what a rank then gathers of the weights what their owners have, is what every rank has the same on all to the
//     bit, and are loss and gradients from these weights on, of labels not seen before, again those of the whole model;
//   are the gradients of the whole model right: by another path, and against float64.
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <assay/parallel/rank_steps.hpp>
#include <assay/parallel/sharded_blocks.hpp>
#include <assay/verification/path_check.hpp>
#include <functional>
#include <optional>
#include <string>

namespace assay::verification {

// How ranks share the whole model. What a rank has of each parameter follows from the trainer's configuration (split,
// context, stages, experts), or from the blocks.
struct SharedModel {
  parallel::ShardedBlocks* blocks = nullptr;  // that parameters come and go by, if they do
  bool all_common = false;                    // every rank has all weights: none are gathered
  bool in_stages = false;                     // each parameter is one rank's, and nothing is common
  // Of ranks that share one batch: how far the gradients may be from the whole model's. The others average.
  std::optional<PathTolerance> one_batch = {};
  // The loss that the record has of the step before, from what each rank has of it: the same function that reports it.
  // Not optional. Every rank calls it, once per name.
  std::function<double(const std::string& name)> reported_loss = {};
  // Words of the texts: what is compared with the whole model, and what every rank has.
  const char* compared = "";
  const char* common = "";
  const char* same = "identical to the bit; ";
};

// `name` is the workload's. `mine`: what this rank has, set up. `step` enqueues a step as the timed ones were enqueued.
// Every rank calls it, once. Throws WRONG_RESULT; in part where a rank has no memory for the whole model. Blocks.
Verified check_whole_model(const Host& host, const std::string& name, models::DecoderTrainer& mine,
                           const SharedModel& shared, const parallel::RankSteps& steps, const Launch& launch,
                           const std::function<void()>& step);

}  // namespace assay::verification
