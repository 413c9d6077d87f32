// Is what was timed the training of the whole model? Of ranks that share it whole_model_check.hpp has the questions. Of
// ranks that each have all of it each question leaves nothing to the one before it:
//   after the last step, whichever kind it was (a silent one, if the host took such): are loss and gradients finite;
//   do all ranks start from rank 0's weights, each with its part of the batch;
//   are the averages that a timed step leaves the mean of what the ranks compute alone, in every element;
//   is the reported loss the mean of the ranks' losses, where it is said to be that;
//   do updates move weights and moments as float64 has it, and are the weights of all ranks the same to the bit;
//   are a rank's own gradients right: by another path, and against float64.
#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/sampling.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/verification/whole_model_check.hpp>
#include <bit>

#include "assay/mesh/decoder_ranks.hpp"

namespace assay::mesh {
namespace {

// A rank's terms of a sum are rounded before they are added, which the whole model does not do. Many tokens leave
// little of that; of few it is the more the larger the part of a gradient that cancels. Found in fp32 with 2 layers on
// 2 ranks, of ten seeds: gradients of 32 tokens 1e-6 apart, of 8, 4, 2 and 1 tokens 3.9e-6, 3.4e-6, 2e-5 and 9.9e-6.
verification::PathTolerance tolerance_of_columns(const models::DecoderConfig& model) {
  constexpr double many_tokens = 32;
  auto tolerance = verification::decoder_tolerance(model);
  if (model.precision.activation != compute::DType::f32) return tolerance;
  const double wider = std::max(1.0, many_tokens / static_cast<double>(model.rows()));
  for (double* of : {&tolerance.gradient, &tolerance.block, &tolerance.factor, &tolerance.few}) *of *= wider;
  return tolerance;
}

// Every rank has all weights, and the sums of all gradients.
verification::SharedModel shared_tokens(models::DecoderConfig model) {
  model.context = {};
  return {.all_common = true,
          .one_batch = verification::decoder_tolerance(model),
          .compared = "the ranks' sums",
          .same = "of all ranks identical to the bit; "};
}

// Each parameter is one rank's, which makes the whole gradient by it.
verification::SharedModel stages(models::DecoderConfig model) {
  model.stages = {};
  return {.in_stages = true, .one_batch = verification::decoder_tolerance(model), .compared = "each rank's stages"};
}

bool holds(const std::vector<train::ElementRange>& ranges, const train::ElementRange& piece) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const train::ElementRange& r) { return r.begin <= piece.begin && piece.end <= r.end; });
}

}  // namespace

// Where collectives begin, and where what a rank owns does.
std::vector<std::int64_t> DecoderRanks::averaged_cuts() const {
  if (!update_) return parallel::begins_of(gradients_->pieces());
  std::vector<std::int64_t> cuts = parallel::begins_of(update_->buckets());
  for (std::int32_t rank = 0; rank < strategy_.trainer.data_ranks; ++rank)
    for (const train::ElementRange& owned : update_->owned_by(rank)) cuts.push_back(owned.begin);
  return cuts;
}

// A reduce-scatter leaves a rank the averages of only its own part; the pieces are cut so that each has one owner.
Verified DecoderRanks::check_gradients(const Launch& launch) {
  const train::ParameterSet& parameters = trainer_.parameters();
  const auto pieces = verification::average_pieces(parameters, averaged_cuts(), strategy_.trainer.data_ranks);
  verification::RankGradients mine = verification::gradients_of_rank(
      trainer_, pieces, trainer_.config().model.layers,
      [&] { steps_.repeat_and_wait(trainer_, [&] { enqueue_step(train::StepMarks(launch)); }); });
  if (update_ && update_->scatters())
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (!holds(trainer_.optimizer().ranges(), pieces[i])) mine.averaged[i] = verification::not_held;
  return verification::check_average(host_, name_ + ".average", parameters, pieces, mine,
                                     verification::own_data(trainer_));
}

// Of what the next step reads: where ranks send one another the copy, the rest of a rank's weights is its own affair.
std::uint64_t DecoderRanks::hash_of_read_weights() const {
  if (!update_ || update_->message_bytes() == 0) return verification::hash_of_weights(trainer_);
  const train::ParameterSet& parameters = trainer_.parameters();
  std::uint64_t hash = verification::hash_of(trainer_.backend(), parameters.compute_copy());
  for (const train::ParameterSet::Id id : models::decoder_blocks(trainer_.ids()).resident.parameters)
    hash = std::rotl(hash, 1) ^ verification::hash_of(trainer_.backend(), parameters.value(id));
  return hash;
}

Verified DecoderRanks::check_replicas(const Launch& launch) {
  std::string finite;
  if (update_)
    verification::check_finite_loss(trainer_);  // of gradients a rank has a part
  else
    finite = verification::check_finite(trainer_, trainer_.model());
  const std::string parts = verification::check_parts(host_, name_ + ".parts", trainer_);
  verification::check_broadcast(host_, name_ + ".broadcast", trainer_, steps_.communicator());
  begin_part(host_, "averages");
  const Verified average = check_gradients(launch);
  checked_loss(name_ + ".loss.averages");  // a rank's own loss is looked at by check_own_model
  begin_part(host_, "optimizer");
  trainer_.start();
  // The values are looked at when everything is gathered: a part that comes from another rank, or is not gathered, is
  // not its owner's any more, or differs between ranks.
  const std::string updates =
      verification::check_updates_of_rank(trainer_, steps_, [&] { enqueue_step(train::StepMarks(launch)); });
  begin_part(host_, "same_weights");
  const std::string weights = verification::check_same_weights(host_, name_ + ".weights", hash_of_read_weights());
  const Verified own = verification::check_own_model(host_, trainer_);
  return {finite + parts + average.text + (update_ ? "each rank's part: " : "") + updates + weights + own.text,
          average.in_part || own.in_part};
}

// To the last bits, which a comparison with another model's loss cannot be.
double DecoderRanks::checked_loss(const std::string& name) const {
  const double reported = reported_loss(name);
  if (strategy_.loss == ReportedLoss::of_rank) return reported;
  constexpr double roundings = 1e-12;
  const bool is_mean = strategy_.loss == ReportedLoss::mean_of_ranks;
  double expected = 0;
  const std::vector<double> losses = comm::exchange(host_, name + ".of_ranks", trainer_.last_loss());
  for (const double loss : losses) expected += loss;
  if (is_mean) expected /= static_cast<double>(losses.size());
  if (!is_mean && !strategy_.trainer.has_terms()) expected /= strategy_.axes.replicas;
  verification::require_loss("after a timed step the reported loss", reported,
                             is_mean ? "the mean of the ranks'" : "the sum of the ranks'", expected, roundings);
  return reported;
}

void DecoderRanks::check_axes() const {
  if (asked_replicas_ == 0) return;
  const std::int64_t ranks = comm::ranks_of(host_).rank_count, sharing = steps_.communicator().size();
  if (sharing * asked_replicas_ != ranks)
    throw Error(ASSAY_WRONG_RESULT, std::to_string(sharing) + " of " + std::to_string(ranks) +
                                        " ranks share a model, the experiment asks for " +
                                        std::to_string(asked_replicas_) + " replicas");
}

// Before the first step that is silent, or repeated.
void DecoderRanks::keep_measured_weights() {
  if (strategy_.axes.has_replicas() && !measured_weights_) measured_weights_ = verification::hash_of_weights(trainer_);
}

// The host repeats the first of the measured steps alone, and restarts: replicas that have not averaged in a later one
// have left other weights.
std::string DecoderRanks::check_measured_weights() const {
  if (!measured_weights_) return "";
  return verification::check_replicas_weights(host_, name_ + ".measured_weights", *measured_weights_,
                                              static_cast<std::size_t>(strategy_.axes.ranks),
                                              "after the measured steps");
}

Verified DecoderRanks::verify(const Launch& launch) {
  const verification::Unmeasured unmeasured(trainer_.backend());
  begin_part(host_, "data");
  asked_.check(trainer_.config());
  check_axes();
  const std::string measured = check_measured_weights();
  const auto check = [&](verification::SharedModel shared) {
    shared.reported_loss = [this](const std::string& name) { return checked_loss(name); };
    const Verified found = verification::check_whole_model(host_, name_, trainer_, shared, steps_, launch,
                                                           [&] { enqueue_step(train::StepMarks(launch)); });
    return Verified(measured + found.text, found.in_part);
  };
  const models::DecoderConfig& model = trainer_.config().model;
  switch (strategy_.shares) {
    case Shares::nothing: break;
    case Shares::blocks: return check({.blocks = &*blocks_});
    case Shares::columns:
      return check({.one_batch = tolerance_of_columns(model), .compared = "each rank's part", .common = " of norms"});
    case Shares::tokens: return check(shared_tokens(model));
    case Shares::stages: return check(stages(model));
  }
  return check_replicas(launch);
}

}  // namespace assay::mesh
