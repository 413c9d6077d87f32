// Did the ranks train one model, and the right one? Three steps from the start, by the strategy that was timed; then
//   the weights of all ranks are the same to the bit, and
//   equal, within rounding, to those of one process that saw the whole batch: gradients of the last step, weights, and
//   the way that the weights have gone since the start.
// AdamW does not feel a factor on all gradients, and a 16-bit weight may not move at all: hence all three.
#include <algorithm>
#include <assay/comm/exchange.hpp>
#include <assay/train/data_parallel.hpp>
#include <cmath>
#include <limits>

#include "workload.hpp"

namespace ddp {

using assay::Error;
using assay::compute::DType;
using assay::train::DecoderModel;
using assay::train::number;
using assay::train::Samples;

namespace {

constexpr int verified_steps = 3;
// Beyond this the reference is left out: it holds the activations of all ranks' batches.
constexpr std::size_t most_reference_bytes = std::size_t{48} << 30;
// The others wait so long for rank 0, which computes as much as all of them together.
constexpr std::int64_t reference_timeout_ms = 3'600'000;

constexpr double not_judged = std::numeric_limits<double>::infinity();
struct Figures {  // relative differences in the Euclidean norm, of the worst parameter; also the tolerances
  double gradients = 0, weights = 0, update = 0;
};
// fp32: rounding of sums in another order; an element whose gradient is nothing but rounding may move either way under
// AdamW. 16 bits: each gradient is rounded on each rank and after the average. bf16 weights (bf16_pure) move by whole
// roundings: their way is stated, and not judged.
Figures tolerance_of(const assay::train::PrecisionPolicy& p) {
  if (p.gradient == DType::f32) return {1e-3, 1e-4, 0.02};
  if (p.parameter == DType::f32) return {0.15, 1e-2, 0.3};
  return {0.15, 1e-2, not_judged};
}

std::string judged(const char* what, double found, double allowed) {
  return std::string(what) + " " + number(found) +
         (allowed == not_judged ? " (not judged)" : " (tolerance " + number(allowed) + ")");
}

void raise(double& worst, double difference) {
  if (!(difference <= worst)) worst = difference;  // NaN stays
}

std::vector<float> minus(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> out(a.size());
  std::transform(a.begin(), a.end(), b.begin(), out.begin(), std::minus<>());
  return out;
}

Figures differences(const Outcome& found, const Outcome& expected, const Samples& start) {
  Figures worst;
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    using assay::train::relative_difference;
    raise(worst.gradients, relative_difference(found.gradients[i], expected.gradients[i]));
    raise(worst.weights, relative_difference(found.weights[i], expected.weights[i]));
    raise(worst.update, relative_difference(minus(found.weights[i], start[i]), minus(expected.weights[i], start[i])));
  }
  return worst;
}

// Rank 0 tells the others this.
struct Verdict {
  Figures found;
  std::uint64_t skipped_bytes = 0;  // not 0: the reference would have needed so much
};

}  // namespace

void Workload::take(Outcome& outcome) const {
  trainer_.backend().synchronize();
  outcome.weights = assay::train::sample_values(trainer_.backend(), trainer_.parameters());
  outcome.gradients = assay::train::sample_gradients(trainer_.backend(), trainer_.parameters());
}

Outcome Workload::data_parallel() {
  for (int i = 0; i < verified_steps; ++i) {
    average_.begin_step();
    trainer_.forward();
    trainer_.backward(average_.listener());
    average_.finish();
    trainer_.update();
  }
  Outcome outcome;
  communicator_->synchronize();
  take(outcome);
  outcome.hash = assay::train::hash_of_weights(trainer_);
  return outcome;
}

Outcome Workload::single_process(DecoderModel& whole_batch) {
  assay::compute::Backend& backend = trainer_.backend();
  const auto forward_backward = [&] {
    whole_batch.forward(backend, trainer_.global_inputs(), &trainer_.global_labels(), whole_batch.config().rows());
    whole_batch.backward(backend, trainer_.global_inputs(), trainer_.global_labels(), whole_batch.config().rows());
  };
  trainer_.lend_memory(whole_batch);
  trainer_.prepare(forward_backward);
  whole_batch.initialize(backend);
  trainer_.start();
  for (int i = 0; i < verified_steps; ++i) {
    forward_backward();
    trainer_.update();
  }
  Outcome outcome;
  take(outcome);
  return outcome;
}

std::string Workload::compare_with_single_process(const Outcome& outcome, const Samples& start) {
  Verdict verdict;
  if (settings_.trainer.rank == 0) {
    assay::train::DecoderConfig config = settings_.trainer.model;
    config.batch_size *= settings_.trainer.ranks;
    config.checkpointing = true;  // the same numbers, in much less memory
    DecoderModel whole_batch(config, trainer_.parameters(), trainer_.ids());
    if (whole_batch.activation_bytes() > most_reference_bytes)
      verdict.skipped_bytes = whole_batch.activation_bytes();
    else
      verdict.found = differences(outcome, single_process(whole_batch), start);
  }
  verdict = assay::comm::exchange(host_, "ddp.single_process", verdict, reference_timeout_ms)[0];
  if (verdict.skipped_bytes > 0)
    return "not compared with a single process, whose activations would take " +
           std::to_string(verdict.skipped_bytes >> 20) + " MiB (at most " + std::to_string(most_reference_bytes >> 20) +
           " are spent on it)";
  const Figures& found = verdict.found;
  const Figures allowed = tolerance_of(settings_.trainer.model.precision);
  const std::string text = "against a single process with the whole batch, relative to its own: " +
                           judged("gradients", found.gradients, allowed.gradients) + ", " +
                           judged("weights", found.weights, allowed.weights) + ", " +
                           judged("their way from the start", found.update, allowed.update);
  if (!(found.gradients <= allowed.gradients && found.weights <= allowed.weights &&
        (allowed.update == not_judged || found.update <= allowed.update)))
    throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

std::string Workload::verify(const assay::Launch&) {
  start();
  const Samples before = assay::train::sample_values(trainer_.backend(), trainer_.parameters());
  trainer_.initialize();
  const Outcome outcome = data_parallel();
  const std::string text = assay::train::check_same_weights(host_, "ddp.weights", outcome.hash, verified_steps);
  return text + compare_with_single_process(outcome, before);
}

}  // namespace ddp
