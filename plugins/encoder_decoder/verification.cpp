// Is what was timed the right computation? Questions answered on the device that was measured:
//   after the last step, whichever kind it was (a traced or a silent one, if the host took such): are the loss and
//   every gradient finite, is the batch that it had, and are those of the steps that follow, what seed and order say;
//   from the starting weights: does the optimizer do what its formula says; dropout included, in a later step than the
//   first, is every operation of the step what it is in float64, does the captured step do what its operations do
//   one by one, and has each place of dropout its own masks, the same in forward and backward;
//   of a few samples, with and without dropout: are loss and gradients those of an independent model in float64;
//   without dropout: is the loss what random weights must give, and do the fused and the unfused path agree on it and
//   on every gradient, with the other attention, so that no kernel of the timed path vouches for itself;
//   on several ranks: are the averaged gradients the mean of what the ranks compute alone, and are the weights the same
//   on all of them, to the bit, after a few steps on different batches.
#include <cmath>
#include <optional>

#include <assay/comm/exchange.hpp>
#include <assay/compute/audited_backend.hpp>
#include <assay/parallel/gradient_buckets.hpp>
#include <assay/verification/average_check.hpp>
#include <assay/verification/dropout_watch.hpp>
#include <assay/verification/encoder_decoder_check.hpp>
#include <assay/verification/encoder_decoder_reference.hpp>
#include <assay/verification/expected_samples.hpp>
#include <assay/verification/optimizer_check.hpp>
#include <assay/verification/other_path.hpp>
#include <assay/verification/rank_check.hpp>
#include <assay/verification/relu_sides.hpp>
#include <assay/verification/spread_constants.hpp>
#include <assay/verification/unmeasured.hpp>
#include "workload.hpp"

namespace encoder_decoder {

using assay::Error;
using assay::models::EncoderDecoderConfig;
using assay::models::EncoderDecoderModel;
using assay::verification::compared_elements;
using assay::verification::Outcome;

namespace {

constexpr std::int64_t longest_whole_scores = 1024;
constexpr std::size_t score_bytes = std::size_t{512} << 20;  // of longer sequences, at a time
constexpr int verified_batches = 3;
constexpr std::int64_t later_step = 5;  // masks of dropout are to be its own

assay::verification::PathTolerance tolerance_of(const EncoderDecoderConfig& c) {
  return assay::verification::relu_path_tolerance(c.precision, c.encoder_layers + c.decoder_layers, c.target_rows());
}

EncoderDecoderConfig without_dropout(EncoderDecoderConfig c) {
  c.dropout = 0;
  return c;
}

// The path that shares the least with the one that was timed.
EncoderDecoderConfig opposite(EncoderDecoderConfig c) {
  c.fused = !c.fused;
  c.flash = !c.flash;
  if (!c.flash && c.sequence_length > longest_whole_scores)
    c.score_rows = assay::models::NaiveAttention::rows_within(score_bytes, c.batch_size, c.heads, c.sequence_length,
                                                              c.sequence_length, c.precision.activation);
  return c;
}

}  // namespace

Outcome Workload::taken(const EncoderDecoderModel& of) const {
  return assay::verification::outcome_of_gradients(trainer_.backend(), trainer_.parameters(), trainer_.loss_of(of),
                                                   compared_elements);
}

std::string Workload::compare_with(const std::string& what, const Outcome& found, const EncoderDecoderModel& other,
                                   const assay::verification::PathTolerance& tolerance) const {
  return assay::verification::compare_paths(
      what, trainer_.backend(), found, trainer_.loss_of(other),
      [&](std::size_t id) { return trainer_.parameters().gradient(id); }, tolerance, trainer_.parameters(), "");
}

void Workload::enqueue(const EncoderDecoderModel& of, assay::compute::Backend& by) const {
  of.forward(by, trainer_.batch());
  of.backward(by, trainer_.batch());
}

void Workload::take_gradients(const EncoderDecoderModel& of, assay::compute::Backend& by) {
  trainer_.prepare(by, [&](assay::compute::Backend& b) { enqueue(of, b); });
  trainer_.start(loss_scale_);
  enqueue(of, by);
}

Configured::Configured(const assay::Case& c, const Settings& settings)
    : dropout(c.get<float>("dropout")),
      dropout_seed(c.seed() + static_cast<std::uint64_t>(c.rank())),
      samples{.sequence_length = c.get<std::int64_t>("sequence_length"),
              .vocabulary = c.get<std::int64_t>("vocab_size"),
              .samples = settings.data.dataset.samples,
              .batch_size = c.get<std::int64_t>("batch_size"),
              .rank = c.rank(),
              .ranks = c.rank_count(),
              .shuffle = c.get<bool>("shuffle"),
              .seed = c.seed()} {}

// From the starting weights, but for what is 1 or 0 in them, and with the number of a later step: a kernel that ignores
// one of these is right in the first one.
void Workload::start_later() {
  trainer_.start(loss_scale_);
  spread_later();
}

void Workload::spread_later() {
  assay::verification::spread_constants(trainer_.backend(), trainer_.parameters());
  trainer_.backend().upload(trainer_.optimizer().step_number(), &later_step);
}

// Logits are a linear layer's of normalised states: weights and bias of variance 1 / (3 d) give them a variance of
// about 1/3 + 1 / (3 d), and the expected cross-entropy against any label is ln(vocab) + variance / 2.
std::string Workload::check_start(double loss) const {
  const auto vocab = static_cast<double>(model().vocab_size);
  const double variance = (1 + 1 / static_cast<double>(model().d_model)) / 3;
  // The head is one draw for all rows, so that few words and a narrow model scatter more.
  const double allowed = 0.05 + 5 * std::sqrt(variance / static_cast<double>(model().target_rows())) +
                         2 / std::sqrt(vocab) + 1 / std::sqrt(static_cast<double>(model().d_model)) * 0.5;
  return assay::verification::check_starting_loss(loss, {std::log(vocab) + variance / 2, allowed},
                                                  settings_.trainer.weights_file.empty());
}

// As the timed one, outside the timed window.
void Workload::repeat_step(const Launch& launch) {
  steps_.repeat([&] { enqueue_step(launch); });
}

// Each rank looks at its own; all of them know what one has found, as those that go on would wait for it. What a batch
// must be comes from a second implementation, and which one is due from the steps that were taken.
std::string Workload::check_batches(const Launch& launch) {
  if (trained_ == 0) throw Error(ASSAY_INTERNAL, "no step has been taken whose batch could be checked");
  assay::compute::Backend& backend = trainer_.backend();
  std::int32_t wrong = -1;
  for (std::int32_t i = 0; i <= verified_batches; ++i) {
    if (i > 0) data_->loader().next(trainer_.batch()), repeat_step(launch), ++trained_;
    steps_.wait(trainer_);
    std::vector<std::int64_t> found(static_cast<std::size_t>(trainer_.batch().elements()));
    backend.download(found.data(), trainer_.batch());
    if (wrong < 0 && found != assay::verification::expected_batch(configured_.samples, trained_ - 1)) wrong = i;
  }
  const std::vector<std::int32_t> ranks =
      steps_.communicate() ? assay::comm::exchange(host_, "encoder_decoder.batches", wrong) : std::vector{wrong};
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank] >= 0)
      throw Error(
          ASSAY_WRONG_RESULT,
          std::string(ranks[rank] == 0 ? "the batch of the last step" : "the batch of a step after the last one") +
              " on rank " + std::to_string(rank) + " is not what seed and order of the data set say");
  return std::to_string(1 + verified_batches) + " batches as seed and order say; ";
}

std::string Workload::check_operations(const Launch& launch, assay::compute::Backend& audited) {
  std::optional<Outcome> of_step;
  // On several ranks the gradients that it leaves are not this rank's own: check_average_of_ranks() looks at them.
  if (!steps_.communicate()) {
    start_later();
    repeat_step(launch);
    of_step = taken(trainer_.model());
  }
  steps_.forget_captured();  // its addresses may be about to change
  trainer_.prepare([&] { enqueue(trainer_.model(), trainer_.backend()); });
  start_later();
  assay::verification::DropoutWatch watch(audited);
  trainer_.model().forward(watch, trainer_.batch());
  watch.begin_backward();
  trainer_.model().backward(watch, trainer_.batch());
  const std::string dropout = watch.check({.probability = configured_.dropout,
                                           .seed = configured_.dropout_seed,
                                           .step = trainer_.optimizer().step_number(),
                                           .places = assay::verification::dropout_places(model())});
  if (!of_step) return dropout;
  return compare_with("timed step against its operations one by one", *of_step, trainer_.model(),
                      tolerance_of(model())) +
         "; " + dropout;
}

// Of the timed step, with dropout and, on several ranks, with their average.
std::string Workload::check_optimizer(const Launch& launch) {
  const auto step = [&] { enqueue_step(launch); };
  if (!steps_.communicate()) return assay::verification::check_updates(trainer_, [&] { steps_.repeat(step); });
  start(loss_scale_);
  return assay::verification::check_updates_of_rank(trainer_, steps_, step, 2);
}

// Dropout draws its masks by the number of the step: a backward that is repeated has the same.
assay::Verified Workload::check_average_of_ranks(const Launch& launch) {
  const assay::train::ParameterSet& parameters = trainer_.parameters();
  const auto pieces =
      assay::verification::average_pieces(parameters, assay::parallel::begins_of(average_.pieces()), settings_.ranks);
  data_->loader().next(trainer_.batch());
  const assay::verification::RankGradients mine =
      assay::verification::gradients_of_rank(trainer_, pieces, model().encoder_layers + model().decoder_layers,
                                             [&] { steps_.repeat_and_wait(trainer_, [&] { enqueue_step(launch); }); });
  return assay::verification::check_average(host_, "encoder_decoder.average", parameters, pieces, mine,
                                            {assay::verification::hash_of(trainer_.backend(), trainer_.batch()),
                                             trainer_.batch().elements(), model().vocab_size});
}

assay::Verified Workload::check_ranks(const Launch& launch) {
  if (!steps_.communicate()) return std::string();
  assay::verification::check_broadcast(host_, "encoder_decoder.broadcast", trainer_, steps_.communicator(),
                                       loss_scale_);
  assay::verification::check_seeds_of_ranks(host_, "encoder_decoder.dropout_seeds", model().dropout_seed);
  const assay::Verified average = check_average_of_ranks(launch);
  for (int i = 0; i < assay::verification::verified_steps; ++i) {
    data_->loader().next(trainer_.batch());
    repeat_step(launch);
  }
  steps_.wait(trainer_);
  const std::string weights = assay::verification::check_same_weights(host_, "encoder_decoder.weights",
                                                                      assay::verification::hash_of_weights(trainer_));
  return {average.text + weights, average.in_part};
}

assay::Verified Workload::verify(const Launch& launch) {
  const assay::verification::Unmeasured unmeasured(trainer_.backend());
  assay::begin_part(host_, "data");
  std::string text = assay::verification::check_finite(trainer_, trainer_.model());
  text += check_batches(launch);
  // fp16: a loss scale at which no step is skipped, and which some parameter has not where its gradient is wrong.
  const auto enqueue_gradients = [&] {
    spread_later();
    trainer_.forward();
    trainer_.backward();
  };
  loss_scale_ = steps_.communicate() ? assay::verification::find_finite_gradients_of_ranks(
                                           host_, "encoder_decoder.loss_scale", trainer_, enqueue_gradients)
                                     : assay::verification::find_finite_gradients(trainer_, enqueue_gradients);
  assay::begin_part(host_, "averages");
  const assay::Verified ranks = check_ranks(launch);
  text += ranks.text;
  assay::begin_part(host_, "optimizer");
  text += check_optimizer(launch);
  assay::begin_part(host_, "operations");
  assay::compute::AuditedBackend audited(trainer_.backend(), model().precision.product_math);
  text += check_operations(launch, audited);
  const bool operations_in_part = !audited.looked_at_all();
  assay::begin_part(host_, "float64_model");
  const assay::Verified against_float64 =
      assay::verification::check_encoder_decoder_against_float64(host_, trainer_, loss_scale_);
  text += against_float64.text;
  assay::begin_part(host_, "other_path");
  EncoderDecoderModel timed(without_dropout(model()), trainer_.parameters(), trainer_.ids());
  trainer_.lend_memory(timed);
  const assay::verification::PathTolerance tolerance = assay::verification::path_tolerance(
      model().precision, model().encoder_layers + model().decoder_layers, model().target_rows());
  assay::verification::ReluSides sides{.error = 4 * tolerance.gradient};
  assay::verification::NotesSides noting(trainer_.backend(), sides);
  take_gradients(timed, noting);
  const Outcome found = taken(timed);
  text += check_start(found.loss);
  EncoderDecoderModel reference(opposite(timed.config()), trainer_.parameters(), trainer_.ids());
  const std::string what = "without dropout, " + assay::verification::against_the_other_path(model().fused);
  assay::verification::FollowsSides following(audited, sides);
  const bool is_made = assay::verification::make_other_path(
      trainer_.backend(), found, {[&] {
        trainer_.lend_memory(reference);
        take_gradients(reference, following);  // of its operations those that the timed path has not
      }});
  if (!is_made) return {text + audited.text() + "; " + assay::verification::no_room_text(what, reference), true};
  text += audited.text() + "; ";
  text += following.text();
  text += compare_with(what, found, reference, tolerance);
  return {text + ", of " + assay::verification::share_of(found, trainer_.parameters()),
          ranks.in_part || operations_in_part || against_float64.in_part};
}

}  // namespace encoder_decoder
