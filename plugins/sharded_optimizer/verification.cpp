// Is what was timed the right computation? Each question leaves nothing to the one before it:
//   do all ranks start from rank 0's weights, each with its part of the batch;
//   are the averages that each rank holds the mean of what the ranks compute alone, and is every gradient held by one;
//   does each rank move its part, weights and moments, as float64 has it, and is it still so when all parts are
//   gathered; after three steps: are the weights of all ranks the same to the bit; are a rank's own gradients right.
#include <algorithm>
#include <bit>
#include <cmath>

#include <assay/parallel/gradient_buckets.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/workload/text.hpp>
#include "step.hpp"

namespace sharded_optimizer {

using assay::train::ElementRange;

namespace {

constexpr int verified_steps = 3;

bool holds(const std::vector<ElementRange>& ranges, const ElementRange& piece) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const ElementRange& r) { return r.begin <= piece.begin && piece.end <= r.end; });
}

}  // namespace

// A reduce-scatter leaves a rank the averages of its own part alone; the pieces are cut so that each is of one owner.
assay::Verified Workload::check_gradients() {
  const auto ranks = static_cast<std::int32_t>(settings_.trainer.ranks);
  std::vector<std::int64_t> cuts = assay::parallel::begins_of(buckets());
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    for (const ElementRange& owned : owned_ranges(settings_.variant, buckets(), arena_.end, rank, ranks))
      cuts.push_back(owned.begin);
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  const std::vector<ElementRange> pieces = assay::verification::average_pieces(parameters, std::move(cuts), ranks);
  assay::verification::RankGradients mine = assay::verification::gradients_of_rank(trainer_, pieces, [&] {
    // Captured as a step's are, where the step is: but for the update, which would move the weights.
    std::unique_ptr<assay::compute::Graph> graph;
    if (graphs_)
      graph = communicator_->watch(
          trainer_.capture_as_is([&] { average_gradients(); }, assay::train::Trainer::Marks::none));
    graph ? graph->launch() : average_gradients();
    communicator_->synchronize();
  });
  if (settings_.variant == Variant::zero1)
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (!holds(trainer_.optimizer().ranges(), pieces[i])) mine.averaged[i] = assay::verification::not_held;
  return assay::verification::check_average(host_, "sharded_optimizer.average", parameters, pieces, mine,
                                            assay::verification::own_data(trainer_));
}

// Of what the next step reads: where ranks send one another the copy, the rest of a rank's weights is its own affair.
std::uint64_t Workload::hash_of_read_weights() const {
  if (exact_weights_.message_bytes() == 0) return assay::verification::hash_of_weights(trainer_);
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  std::uint64_t hash = assay::verification::hash_of(trainer_.backend(), parameters.compute_copy());
  for (const assay::train::ParameterSet::Id id : assay::models::decoder_blocks(trainer_.ids()).resident.parameters)
    hash = std::rotl(hash, 1) ^ assay::verification::hash_of(trainer_.backend(), parameters.value(id));
  return hash;
}

// The values are looked at when everything is gathered: a part that comes from another rank, or is not gathered, is not
// its owner's any more, or differs between ranks.
std::string Workload::check_updates(const Launch& launch) {
  assay::verification::OptimizerCheck check(trainer_);
  for (int i = 0; i < verified_steps; ++i) {
    graphs_ ? graphs_.launch() : enqueue_step(launch);
    communicator_->synchronize();
    check.after_step();
    check.set_visible_rate();
  }
  return "each rank's part: " + check.text() +
         assay::verification::check_same_weights(host_, "sharded_optimizer.weights", hash_of_read_weights(),
                                                 verified_steps);
}

assay::Verified Workload::verify(const Launch& launch) {
  if (const double loss = trainer_.last_loss(); !std::isfinite(loss))
    throw assay::Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + assay::workload::number(loss));
  assay::verification::check_parts(host_, "sharded_optimizer.parts", trainer_);
  const double loss_scale =
      assay::verification::find_finite_gradients_of_ranks(host_, "sharded_optimizer.loss_scale", trainer_, [&] {
        trainer_.forward();
        trainer_.backward();
      });
  assay::verification::check_broadcast(host_, "sharded_optimizer.broadcast", trainer_, *communicator_, loss_scale);
  const assay::Verified average = check_gradients();
  const std::string updates = check_updates(launch);
  const assay::Verified own = assay::verification::check_own_gradients(trainer_);
  return {average.text + updates + own.text, average.in_part || own.in_part};
}

}  // namespace sharded_optimizer
