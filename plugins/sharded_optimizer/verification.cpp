// Is what was timed the right computation? From the starting weights, three steps:
//   do all ranks have the same weights, to the bit;
//   are they those of a plain data-parallel step, that communicates after its backward, waits for everything, and
//   updates the whole arena with state for all of it on every rank.
#include <cmath>

#include <assay/comm/exchange.hpp>
#include <assay/train/data_parallel.hpp>
#include "workload.hpp"

namespace sharded_optimizer {

using assay::DeviceMemory;
using assay::Error;
using assay::compute::DType;
using assay::train::number;
using assay::train::Optimizer;
using assay::train::Samples;

namespace {

constexpr int verified_steps = 3;

// The tolerance is for the distance between the weights of both, divided by the distance that the plain step moved
// them. Where ranks are summed in another order, an averaged gradient that is nearly zero may change its sign, and
// AdamW makes a whole step of it.
double tolerance_of(const assay::train::PrecisionPolicy& p) { return p.gradient == DType::f32 ? 1e-3 : 0.1; }

double distance(const Samples& a, const Samples& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      const double d = static_cast<double>(a[i][k]) - static_cast<double>(b[i][k]);
      squares += d * d;
    }
  return std::sqrt(squares);
}

}  // namespace

Workload::Outcome Workload::outcome_of(int steps, const std::function<void()>& step) {
  for (int i = 0; i < steps; ++i) step();
  communicator_->synchronize();
  trainer_.backend().synchronize();
  return {assay::train::hash_of_weights(trainer_),
          assay::train::sample_values(trainer_.backend(), trainer_.parameters())};
}

// The optimizer of the baseline, whose state comes beside the variant's own. False when some rank has no room for it.
bool Workload::reserve_baseline_state(Optimizer& baseline, DeviceMemory& state) {
  std::uint8_t fits = 1;
  try {
    state = DeviceMemory(host_, ASSAY_MEMORY_OPTIMIZER_STATE, baseline.state_bytes(), "verification");
    baseline.bind(state.data());
  } catch (const Error& e) {
    if (e.status() != ASSAY_OUT_OF_MEMORY) throw;
    fits = 0;
  }
  for (const std::uint8_t of_rank : assay::comm::exchange(host_, "sharded_optimizer.baseline_fits", fits))
    fits &= of_rank;
  return fits != 0;
}

std::string Workload::compare_with_baseline(const Samples& start, const Outcome& outcome) {
  Optimizer baseline(settings_.trainer.optimizer, trainer_.parameters());
  DeviceMemory state;
  if (!reserve_baseline_state(baseline, state))
    return "not compared with the baseline, whose optimizer state of " + std::to_string(baseline.state_bytes() >> 20) +
           " MiB does not fit beside this";
  trainer_.start();
  baseline.reset(trainer_.backend());
  const Outcome reference = outcome_of(verified_steps, [&] {
    trainer_.forward();
    trainer_.backward();
    for (const assay::train::ElementRange& bucket : buckets()) {
      const assay::compute::Tensor gradients = trainer_.parameters().gradients(bucket);
      communicator_->wait(communicator_->all_reduce(gradients, gradients, assay::comm::Reduction::average));
    }
    baseline.step(trainer_.backend(), trainer_.scaler());
  });
  const double moved = distance(reference.weights, start);
  const std::string plain = "those of a plain step (all-reduce after backward, all state on every rank)";
  if (outcome.hash == reference.hash)
    return "they are to the bit " + plain + ", which moved the sampled ones by " + number(moved);
  const double difference = distance(outcome.weights, reference.weights);
  const double apart = difference == 0 ? 0 : difference / moved;
  const double tolerance = tolerance_of(trainer_.parameters().policy());
  const std::string text = "they differ from " + plain + " by " + number(apart) +
                           " of the way that those moved (tolerance " + number(tolerance) + ")";
  if (!(apart <= tolerance)) throw Error(ASSAY_WRONG_RESULT, text);
  return text;
}

std::string Workload::verify(const assay::Launch& launch) {
  if (const double loss = trainer_.last_loss(); !std::isfinite(loss))
    throw Error(ASSAY_WRONG_RESULT, "the loss of the last step is " + number(loss));
  trainer_.start();
  const Outcome start = outcome_of(0, [] {});
  const Outcome outcome = outcome_of(verified_steps, [&] { step(launch); });
  const std::string agreement =
      assay::train::check_same_weights(host_, "sharded_optimizer.weights", outcome.hash, verified_steps);
  if (outcome.hash == start.hash && settings_.trainer.optimizer.lr > 0)
    throw Error(ASSAY_WRONG_RESULT, "no weight changed in " + std::to_string(verified_steps) +
                                        " steps from the start: nothing is updated, or parameter 'lr' is too small");
  return agreement + compare_with_baseline(start.weights, outcome);
}

}  // namespace sharded_optimizer
