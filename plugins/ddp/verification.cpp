// Did the ranks train one model, and the right one? Each question leaves nothing to the one before it:
//   after the last step, whichever kind it was (a silent one, if the host took such): are loss and gradients finite;
//   do all ranks start from rank 0's weights, each with its part of the batch;
//   are the averages that the timed strategy makes the mean of what the ranks compute alone, in every element;
//   do updates move weights and moments as float64 has it, and are the weights of all ranks the same to the bit;
//   are a rank's own gradients right.
#include <assay/comm/exchange.hpp>
#include <assay/train/data_parallel.hpp>
#include <assay/train/decoder_rank_check.hpp>
#include <assay/train/optimizer_check.hpp>
#include <assay/train/path_check.hpp>

#include "workload.hpp"

namespace ddp {

namespace {
constexpr int verified_steps = 3;
}  // namespace

assay::Verified Workload::check_gradients() {
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  const auto pieces =
      assay::train::average_pieces(parameters, assay::train::begins_of(average_.pieces()), settings_.trainer.ranks);
  assay::train::RankGradients mine;
  trainer_.forward();
  trainer_.backward();
  mine.own = sketch_of(trainer_.backend(), parameters.all_gradients(), pieces);
  spoil_gradients(trainer_.backend(), parameters);
  average_gradients();
  communicator_->synchronize();
  mine.averaged = sketch_of(trainer_.backend(), parameters.all_gradients(), pieces);
  return check_average(host_, "ddp.average", parameters, pieces, mine, own_data(trainer_));
}

std::string Workload::check_updates() {
  assay::train::OptimizerCheck check(trainer_);
  for (int i = 0; i < verified_steps; ++i) {
    average_gradients();
    trainer_.update();
    communicator_->synchronize();
    check.after_step();
    check.set_visible_rate();
  }
  return check.text() +
         assay::train::check_same_weights(host_, "ddp.weights", hash_of_weights(trainer_), verified_steps);
}

assay::Verified Workload::verify(const Launch&) {
  const std::string finite = assay::train::check_finite(trainer_, trainer_.model());
  assay::train::check_parts(host_, "ddp.parts", trainer_);
  const double loss_scale = assay::train::find_finite_gradients_of_ranks(host_, "ddp.loss_scale", trainer_, [&] {
    trainer_.forward();
    trainer_.backward();
  });
  assay::train::check_broadcast(host_, "ddp.broadcast", trainer_, *communicator_, loss_scale);
  trainer_.initialize();
  const assay::Verified average = check_gradients();
  const std::string updates = check_updates();
  const assay::Verified own = check_own_gradients(trainer_);
  return {finite + average.text + updates + own.text, average.in_part || own.in_part};
}

}  // namespace ddp
