// Is what was timed the right computation? Questions answered on the device that was measured:
//   after the last step, timed or traced: are the loss and every gradient finite, and is the batch what the experiment
//   says;
//   from the starting weights: is the loss what random weights must give, and does the optimizer, if there is one, do
//   what its formula says;
//   is every operation of the step, and of the one that it is compared with, what it is in float64;
//   are the gradients of a few tokens those of a float64 model on the host;
//   do the fused and the unfused path agree on the loss and on every gradient, with the other attention and with
//   recomputation, so that no kernel of the timed path vouches for itself.
#include <algorithm>
#include <assay/compute/audited_backend.hpp>
#include <assay/verification/decoder_check.hpp>
#include <assay/verification/decoder_data_check.hpp>
#include <assay/verification/decoder_rank_check.hpp>
#include <assay/verification/loss_scale_check.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/other_path.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/verification/unmeasured.hpp>
#include <assay/workload/text.hpp>
#include <cmath>

#include "workload.hpp"

namespace decoder {

using assay::Error;
using assay::compute::Tensor;
using assay::models::DecoderConfig;
using assay::models::DecoderModel;
using assay::train::ParameterSet;
using assay::verification::compared_elements;
using assay::verification::Outcome;
using assay::workload::number;

// By a graph, if the timed steps replayed one, else by the operations one by one.
void Workload::enqueue_timed(const Launch& launch) {
  if (graph_) return graph_->launch();
  training_step(trainer_, launch);
}

// Forward, and backward if there is one, of the operations one by one. A forward alone has its loss from here.
void Workload::enqueue_with_loss(const DecoderModel& of) const { enqueue_with_loss(of, trainer_.backend()); }
void Workload::enqueue_with_loss(const DecoderModel& of, assay::compute::Backend& by) const {
  of.whole_step(by, trainer_.inputs(), trainer_.labels(), trainer_.valid_rows(), trainer_.left_multiprocessors());
}

// Of a captured step also whether it does what its operations do.
std::string Workload::check_operations(assay::compute::Backend& audited, const Outcome& timed, double loss_scale) {
  const bool captured = graph_ != nullptr;
  graph_.reset();  // its addresses may be about to change
  const DecoderModel& of = trainer_.model();
  trainer_.prepare([&] { enqueue_with_loss(of); });
  trainer_.prepare(audited, [&](assay::compute::Backend& by) { enqueue_with_loss(of, by); });
  trainer_.start(loss_scale);
  assay::verification::spread_constants(trainer_.backend(), trainer_.parameters());
  enqueue_with_loss(of, audited);
  if (!captured) return "";
  trainer_.start(loss_scale);
  enqueue_with_loss(of);
  return compare_with("captured step against its operations one by one", timed, of) + "; ";
}

std::string Workload::compare_with(const std::string& what, const Outcome& timed, const DecoderModel& other) const {
  return assay::verification::compare_paths(
      what, trainer_.backend(), timed, trainer_.loss_of(other), [&](std::size_t i) { return compared(other, i); },
      assay::verification::decoder_tolerance(model(), trainer_.valid_rows()), trainer_.parameters(),
      model().backward ? trainer_.parameters().all()[trainer_.ids().embeddings].name : "logits");
}

// What is compared: the gradients by parameter, and, as most rows of the embedding's are zero, one that is not; of a
// forward alone the logits.
Tensor Workload::compared(const DecoderModel& of, std::size_t index) const {
  const ParameterSet& set = trainer_.parameters();
  if (!of.config().backward) return of.logits();
  if (index < set.all().size()) return set.gradient(index);
  return set.gradient(trainer_.ids().embeddings).slice(0, trainer_.first_token(), 1);
}

Outcome Workload::timed_outcome(const Launch& launch, std::string& text, double& loss_scale) {
  Outcome out;
  const auto keep = [&](const Tensor& t) {
    out.kept.push_back(assay::compute::inspector_of(trainer_.backend())->keep(t, compared_elements));
  };
  trainer_.initialize();
  const bool updates = settings_.pass == Pass::train_step;
  std::string updated;
  if (model().backward) {
    if (updates) assay::begin_part(host_, "optimizer");
    if (updates) text += assay::verification::check_skipped_step(trainer_, [&] { enqueue_timed(launch); });
    loss_scale = assay::verification::find_finite_gradients(trainer_, [&] { enqueue_timed(launch); });
    assay::verification::spoil_compute_copy(trainer_.backend(), trainer_.parameters());
    trainer_.start(loss_scale);
    if (updates) {
      assay::verification::OptimizerCheck optimizer(trainer_);
      enqueue_timed(launch);
      optimizer.after_step();
      optimizer.set_visible_rate();
      enqueue_timed(launch);
      optimizer.after_step();
      updated = optimizer.text();
      updated += assay::verification::check_late_updates(trainer_, optimizer, [&] {
        assay::verification::spoil_gradients(trainer_.backend(), trainer_.parameters());
        enqueue_timed(launch);
      });
      // The gradients compared below are of a large update, and so reveal one that comes too early.
      trainer_.start(loss_scale);
      optimizer.set_visible_rate();
    }
    assay::begin_part(host_, "timed_step");
    assay::verification::spoil_gradients(trainer_.backend(), trainer_.parameters());
    enqueue_timed(launch);
    out = assay::verification::outcome_of_gradients(trainer_.backend(), trainer_.parameters(),
                                                    trainer_.loss_of(trainer_.model()));
    keep(compared(trainer_.model(), trainer_.parameters().all().size()));
  } else {
    trainer_.start();
    assay::begin_part(host_, "timed_step");
    assay::verification::spoil(trainer_.backend(), trainer_.model().logits());
    enqueue_timed(launch);
    trainer_.backend().synchronize();
    keep(compared(trainer_.model(), 0));
    trainer_.prepare([&] { enqueue_with_loss(trainer_.model()); });
    trainer_.start();
    enqueue_with_loss(trainer_.model());
    out.loss = trainer_.loss_of(trainer_.model());
  }
  text += check_start(out.loss) + updated;
  return out;
}

std::string Workload::check_start(double loss) const {
  return assay::verification::check_starting_loss(
      loss, assay::verification::starting_loss_of_decoder(model(), trainer_.valid_rows()),
      settings_.trainer.weights_file.empty());
}

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  assay::begin_part(host_, "data");
  asked_.check(trainer_.config());
  std::string text = model().backward ? assay::verification::check_finite(trainer_, trainer_.model()) : "";
  text += assay::verification::check_data(trainer_);
  double loss_scale = assay::verification::verification_loss_scale;
  Outcome timed = timed_outcome(launch, text, loss_scale);
  assay::compute::AuditedBackend audited(trainer_.backend(), model().precision.product_math);
  assay::begin_part(host_, "operations");
  text += check_operations(audited, timed, loss_scale);
  const bool operations_in_part = !audited.looked_at_all();
  assay::begin_part(host_, "float64_model");
  const assay::Verified exact = assay::verification::with_room_of(trainer_.backend(), timed, [&] {
    return assay::verification::check_against_float64(host_, trainer_, loss_scale);
  });
  text += exact.text;
  assay::begin_part(host_, "other_path");
  const std::string what = assay::verification::against_the_other_path(model().fused);
  std::optional<DecoderModel> other;
  const auto make_other = [&](const DecoderConfig& config) {
    other.emplace(config, trainer_.parameters(), trainer_.ids());
    trainer_.lend_memory(*other);
    trainer_.prepare(audited, [&](assay::compute::Backend& by) { enqueue_with_loss(*other, by); });
  };
  if (!assay::verification::make_other_path(
          trainer_.backend(), timed,
          {[&] { make_other(assay::verification::opposite_path(model())); },
           [&] { make_other(assay::verification::opposite_path_by_definition(model())); }})) {
    // On fewer sequences the other path may fit; of a forward alone there is no such check.
    if (model().backward && model().batch_size > 1) {
      timed = {};  // the memory that it takes
      const assay::Verified fewer = assay::verification::check_own_gradients(trainer_);
      return {text + audited.text() + "; " + fewer.text, operations_in_part || exact.in_part || fewer.in_part};
    }
    return {text + audited.text() + "; " + assay::verification::no_room_text(what, *other), true};
  }
  const DecoderModel& reference = *other;
  reference.initialize(trainer_.backend());
  trainer_.start(loss_scale);
  enqueue_with_loss(reference, audited);  // of its operations those that the timed path has not
  text += audited.text() + "; " + compare_with(what, timed, reference);
  const std::string share =
      model().backward ? assay::verification::share_of(timed, trainer_.parameters())
                       : assay::verification::share_text(static_cast<double>(timed.kept.front()->elements()) /
                                                         static_cast<double>(model().rows() * model().vocab_size));
  return {text + ", of " + share, operations_in_part || exact.in_part};
}

}  // namespace decoder
