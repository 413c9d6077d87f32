// Is what was timed the right computation? Questions answered on the device that was measured:
//   after the last step: are the loss and every gradient finite;
//   from the starting weights: does the captured step, dropout included, do what its operations do one by one;
//   without dropout: is the loss what random weights must give, and do the fused and the unfused path agree on it and
//   on every gradient, with the other attention, so that no kernel of the timed path vouches for itself; on several
//   ranks: are the weights the same on all of them, to the bit, after a few steps on different batches.
#include <cmath>

#include <assay/train/data_parallel.hpp>
#include "workload.hpp"

namespace encoder_decoder {

using assay::Error;
using assay::train::EncoderDecoderConfig;
using assay::train::EncoderDecoderModel;
using assay::train::number;
using assay::train::Outcome;
using assay::train::relu_path_tolerance;
using assay::train::verification_loss_scale;

namespace {

constexpr std::int64_t longest_naive_sequence = 1024;
constexpr int verified_steps = 3;

EncoderDecoderConfig without_dropout(EncoderDecoderConfig c) {
  c.dropout = 0;
  return c;
}

// The path that shares the least with the one that was timed.
EncoderDecoderConfig opposite(EncoderDecoderConfig c) {
  c.fused = !c.fused;
  c.flash = !c.flash || c.sequence_length > longest_naive_sequence;
  return c;
}

}  // namespace

void Workload::take(Outcome& outcome, const EncoderDecoderModel& of) const {
  assay::compute::Backend& backend = trainer_.backend();
  backend.synchronize();
  float loss = 0;
  backend.download(&loss, of.loss());
  outcome.loss = static_cast<double>(loss);
  outcome.samples = assay::train::sample_gradients(backend, trainer_.parameters());
}

Outcome Workload::outcome_of(const EncoderDecoderModel& of) {
  const auto enqueue = [&] {
    of.forward(trainer_.backend(), trainer_.batch());
    of.backward(trainer_.backend(), trainer_.batch());
  };
  trainer_.prepare(enqueue);
  trainer_.start(verification_loss_scale);
  enqueue();
  Outcome outcome;
  take(outcome, of);
  return outcome;
}

// Logits are a linear layer's of normalised states: weights and bias of variance 1 / (3 d) give them a variance of
// about 1/3 + 1 / (3 d), and the expected cross-entropy against any label is ln(vocab) + variance / 2.
std::string Workload::check_start(double loss) const {
  const std::string found = "starting loss " + number(loss, "%.5g");
  if (!settings_.trainer.weights_file.empty()) return found + " (weights from a file); ";
  const auto vocab = static_cast<double>(model().vocab_size);
  const double variance = (1 + 1 / static_cast<double>(model().d_model)) / 3;
  const double expected = std::log(vocab) + variance / 2;
  // The head is one draw for all rows, so that few words and a narrow model scatter more.
  const double allowed = 0.05 + 5 * std::sqrt(variance / static_cast<double>(model().target_rows())) +
                         2 / std::sqrt(vocab) + 1 / std::sqrt(static_cast<double>(model().d_model)) * 0.5;
  const std::string text =
      found + ", expected " + number(expected, "%.5g") + " +- " + number(allowed, "%.2g") + " for random weights";
  if (!(std::abs(loss - expected) <= allowed)) throw Error(ASSAY_WRONG_RESULT, text);
  return text + "; ";
}

std::string Workload::check_replay() {
  if (!graph_) return "";
  trainer_.start(verification_loss_scale);
  graph_->launch();
  Outcome replayed;
  take(replayed, trainer_.model());
  graph_.reset();  // its addresses may be about to change
  const assay::train::PathTolerance tolerance = relu_path_tolerance(model().precision);
  return assay::train::compare_paths("captured step against its operations one by one", replayed,
                                     outcome_of(trainer_.model()), tolerance, trainer_.parameters(), "") +
         "; ";
}

std::string Workload::check_ranks(const assay::Launch& launch) {
  if (!communicator_) return "";
  start(verification_loss_scale);  // fp16: so that no step is skipped
  for (int i = 0; i < verified_steps; ++i) {
    data_->loader().next(trainer_.batch());
    enqueue_step(launch);
  }
  communicator_->synchronize();
  trainer_.backend().synchronize();
  return assay::train::check_same_weights(host_, "encoder_decoder.weights", assay::train::hash_of_weights(trainer_),
                                          verified_steps);
}

std::string Workload::verify(const assay::Launch& launch) {
  std::string text = assay::train::check_finite(trainer_, trainer_.model());
  text += check_ranks(launch);
  text += check_replay();
  EncoderDecoderModel timed(without_dropout(model()), trainer_.parameters(), trainer_.ids());
  trainer_.lend_memory(timed);
  const Outcome found = outcome_of(timed);
  text += check_start(found.loss);
  EncoderDecoderModel reference(opposite(timed.config()), trainer_.parameters(), trainer_.ids());
  trainer_.lend_memory(reference);
  const std::string what = std::string("without dropout, ") + (model().fused ? "fused" : "unfused") +
                           " path against the " + (model().fused ? "unfused" : "fused") + " one";
  return text + assay::train::compare_paths(what, found, outcome_of(reference), relu_path_tolerance(model().precision),
                                            trainer_.parameters(), "");
}

}  // namespace encoder_decoder
