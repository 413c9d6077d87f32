// Is what was timed the right computation? Each question leaves nothing to the one before it:
//   do all ranks start from rank 0's weights, each with its part of the batch;
//   are the averages that each rank holds after a timed step the mean of what the ranks compute alone, and is every
//   gradient held by one; does each rank move its part, weights and moments, as float64 has it, and is it still so when
//   all parts are gathered; after three steps: are the weights of all ranks the same to the bit; are a rank's own
//   gradients right, by another path and against float64.
#include <algorithm>
#include <bit>

#include <assay/parallel/gradient_buckets.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/unmeasured.hpp>
#include "step.hpp"

namespace sharded_optimizer {

using assay::train::ElementRange;

namespace {

bool holds(const std::vector<ElementRange>& ranges, const ElementRange& piece) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const ElementRange& r) { return r.begin <= piece.begin && piece.end <= r.end; });
}

}  // namespace

// A reduce-scatter leaves a rank the averages of its own part alone; the pieces are cut so that each is of one owner.
assay::Verified Workload::check_gradients(const Launch& launch) {
  const auto ranks = static_cast<std::int32_t>(settings_.trainer.data_ranks);
  std::vector<std::int64_t> cuts = assay::parallel::begins_of(buckets());
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    for (const ElementRange& owned : owned_by(rank)) cuts.push_back(owned.begin);
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  const std::vector<ElementRange> pieces = assay::verification::average_pieces(parameters, std::move(cuts), ranks);
  assay::verification::RankGradients mine = assay::verification::gradients_of_rank(
      trainer_, pieces, [&] { steps_.repeat_and_wait(trainer_, [&] { enqueue_step(launch); }); });
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

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  assay::begin_part(host_, "data");
  asked_.check(trainer_.config());
  assay::verification::check_finite_loss(trainer_);
  const std::string parts = assay::verification::check_parts(host_, "sharded_optimizer.parts", trainer_);
  assay::verification::check_broadcast(host_, "sharded_optimizer.broadcast", trainer_, communicator());
  assay::begin_part(host_, "averages");
  const assay::Verified average = check_gradients(launch);
  assay::begin_part(host_, "optimizer");
  trainer_.start();
  // The values are looked at when everything is gathered: a part that comes from another rank, or is not gathered, is
  // not its owner's any more, or differs between ranks.
  const std::string updates =
      assay::verification::check_updates_of_rank(trainer_, steps_, [&] { enqueue_step(launch); });
  assay::begin_part(host_, "same_weights");
  const std::string weights =
      assay::verification::check_same_weights(host_, "sharded_optimizer.weights", hash_of_read_weights());
  const assay::Verified own = assay::verification::check_own_model(host_, trainer_);
  return {parts + average.text + "each rank's part: " + updates + weights + own.text, average.in_part || own.in_part};
}

}  // namespace sharded_optimizer
