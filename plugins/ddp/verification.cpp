// Did the ranks train one model, and the right one? Each question leaves nothing to the one before it:
//   after the last step, whichever kind it was (a silent one, if the host took such): are loss and gradients finite;
//   do all ranks start from rank 0's weights, each with its part of the batch;
//   are the averages that the timed strategy makes the mean of what the ranks compute alone, in every element;
//   do updates move weights and moments as float64 has it, and are the weights of all ranks the same to the bit;
//   are a rank's own gradients right.
#include <assay/comm/exchange.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/path_check.hpp>
#include <assay/verification/rank_check.hpp>

#include "workload.hpp"

namespace ddp {

namespace {
constexpr int verified_steps = 3;
}  // namespace

assay::Verified Workload::check_gradients() {
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  const auto pieces = assay::verification::average_pieces(parameters, assay::parallel::begins_of(average_->pieces()),
                                                          settings_.trainer.ranks);
  const assay::verification::RankGradients mine = assay::verification::gradients_of_rank(trainer_, pieces, [&] {
    // Captured as a step's are, where the step is: but for the update, which would move the weights.
    std::unique_ptr<assay::compute::Graph> graph;
    if (graphs_)
      graph = communicator_->watch(
          trainer_.capture_as_is([&] { average_gradients(); }, assay::train::Trainer::Marks::none));
    graph ? graph->launch() : average_gradients();
    communicator_->synchronize();
  });
  return assay::verification::check_average(host_, "ddp.average", parameters, pieces, mine,
                                            assay::verification::own_data(trainer_));
}

// By the step that is timed.
std::string Workload::check_updates(const Launch& launch) {
  assay::verification::OptimizerCheck check(trainer_);
  for (int i = 0; i < verified_steps; ++i) {
    graphs_ ? graphs_.launch() : enqueue_step(launch);
    communicator_->synchronize();
    check.after_step();
    check.set_visible_rate();
  }
  return check.text() + assay::verification::check_same_weights(
                            host_, "ddp.weights", assay::verification::hash_of_weights(trainer_), verified_steps);
}

assay::Verified Workload::verify(const Launch& launch) {
  const std::string finite = assay::verification::check_finite(trainer_, trainer_.model());
  assay::verification::check_parts(host_, "ddp.parts", trainer_);
  const double loss_scale = assay::verification::find_finite_gradients_of_ranks(host_, "ddp.loss_scale", trainer_, [&] {
    trainer_.forward();
    trainer_.backward();
  });
  assay::verification::check_broadcast(host_, "ddp.broadcast", trainer_, *communicator_, loss_scale);
  trainer_.initialize();
  const assay::Verified average = check_gradients();
  const std::string updates = check_updates(launch);
  const assay::Verified own = assay::verification::check_own_gradients(trainer_);
  return {finite + average.text + updates + own.text, average.in_part || own.in_part};
}

}  // namespace ddp
