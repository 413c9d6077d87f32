// Did the ranks train one model, and the right one? Each question leaves nothing to the one before it:
//   after the last step, whichever kind it was (a silent one, if the host took such): are loss and gradients finite;
//   do all ranks start from rank 0's weights, each with its part of the batch;
//   are the averages that a timed step leaves the mean of what the ranks compute alone, in every element;
//   do updates move weights and moments as float64 has it, and are the weights of all ranks the same to the bit;
//   are a rank's own gradients right: by another path, and against float64.
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/unmeasured.hpp>

#include "workload.hpp"

namespace ddp {

assay::Verified Workload::check_gradients(const Launch& launch) {
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  const auto pieces = assay::verification::average_pieces(parameters, assay::parallel::begins_of(average_->pieces()),
                                                          settings_.trainer.data_ranks);
  const assay::verification::RankGradients mine = assay::verification::gradients_of_rank(
      trainer_, pieces, [&] { steps_.repeat_and_wait(trainer_, [&] { enqueue_step(launch); }); });
  return assay::verification::check_average(host_, "ddp.average", parameters, pieces, mine,
                                            assay::verification::own_data(trainer_));
}

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  assay::begin_part(host_, "data");
  asked_.check(trainer_.config());
  const std::string finite = assay::verification::check_finite(trainer_, trainer_.model());
  const std::string parts = assay::verification::check_parts(host_, "ddp.parts", trainer_);
  assay::verification::check_broadcast(host_, "ddp.broadcast", trainer_, steps_.communicator());
  assay::begin_part(host_, "averages");
  const assay::Verified average = check_gradients(launch);
  assay::begin_part(host_, "optimizer");
  trainer_.start();
  const std::string updates =
      assay::verification::check_updates_of_rank(trainer_, steps_, [&] { enqueue_step(launch); });
  assay::begin_part(host_, "same_weights");
  const std::string weights =
      assay::verification::check_same_weights(host_, "ddp.weights", assay::verification::hash_of_weights(trainer_));
  const assay::Verified own = assay::verification::check_own_model(host_, trainer_);
  return {finite + parts + average.text + updates + weights + own.text, average.in_part || own.in_part};
}

}  // namespace ddp
