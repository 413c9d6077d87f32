#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/comm/exchange.hpp>
#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/open_communicator.hpp>

#include "step.hpp"

namespace sharded_optimizer {

namespace op = assay::compute::op;

using assay::comm::Reduction;
using assay::compute::size_of;
using assay::compute::Tensor;
using assay::parallel::shard_of;
using assay::train::ElementRange;
using assay::train::ParameterSet;

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      trainer_(host_, settings_.trainer),
      ready_buckets_(trainer_.parameters(),
                     assay::parallel::plan_buckets(trainer_.parameters(),
                                                   assay::parallel::bucket_options(settings_.communication.bucket_bytes,
                                                                                   settings_.trainer.arena_multiple)),
                     [this](std::size_t bucket) { start_reduction(bucket); }),
      arena_{0, trainer_.parameters().arena_elements()},
      reductions_(buckets().size()),
      gathers_(buckets().size()) {
  trainer_.optimizer().restrict_to(owned_ranges(settings_.variant, buckets(), arena_.end, c.rank(), c.rank_count()));
}

assay::Work Workload::work() const {
  const ParameterSet& parameters = trainer_.parameters();
  const auto n = static_cast<std::uint64_t>(parameters.parameter_count());
  const assay::workload::PrecisionPolicy& p = parameters.policy();
  std::uint64_t updated = 0;
  for (const ElementRange& range : trainer_.optimizer().ranges())
    updated += static_cast<std::uint64_t>(range.elements());
  // Weights are read by forward and by backward, which writes the gradients; the update reads gradient, weight and
  // moments, and writes all but the gradient. Communication and activations are left out: a lower bound.
  const std::uint64_t step = n * (2 * size_of(p.activation) + size_of(p.gradient));
  const std::uint64_t update = updated * (size_of(p.gradient) + 2 * size_of(p.parameter)) +
                               2 * static_cast<std::uint64_t>(trainer_.optimizer().moment_bytes());
  return {.flops = 3 * assay::models::decoder_forward_flops(settings_.trainer.model),
          .bytes = step + update,
          .items = static_cast<std::uint64_t>(settings_.trainer.model.rows()),
          .arithmetic = assay::workload::arithmetic_of(settings_.trainer.model.precision)};
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

// Memory is taken in the order in which a framework would come to it, with a moment after each part.
void Workload::setup(const Launch& launch) {
  const auto open_communicator = [&] {
    communicator_ = assay::parallel::open_communicator(host_, launch, settings_.communication, trainer_);
    communicator_->register_memory(trainer_.parameter_memory().data(), trainer_.parameters().value_bytes());
    assay::memory_moment(host_, "before_state");
  };
  trainer_.setup(
      launch, [&] { enqueue_without_communication(); },
      {.parameters_taken = [&] { assay::memory_moment(host_, "after_init"); }, .step_taken = open_communicator});
  if (settings_.graph)
    graphs_.capture(
        trainer_, communicator_, [&] { enqueue_step(launch); }, assay::parallel::StepGraphs::Marks::captured);
  assay::parallel::broadcast_parameters(trainer_, *communicator_);
  host_.info(communicator_->description());
  communicator_->take_totals();  // from here on they count steps alone
  assay::memory_moment(host_, "before_step");
}

void Workload::enqueue_without_communication() {
  trainer_.forward();
  trainer_.backward();
  clear_padding();
  trainer_.update();
  for (const ElementRange& own : trainer_.optimizer().ranges()) refresh_copy_around(arena_, own);
}

void Workload::run(const Launch& launch) {
  ++steps_;
  if (!graphs_) return enqueue_step(launch);
  if (is_silent_) return graphs_.launch_silent();
  graphs_.launch();
  assay::mark_replayed(host_);
}

void Workload::silence(bool silent) {
  is_silent_ = silent;
  communicator_.silence(silent);
  if (silent) graphs_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

void Workload::average_gradients() {
  trainer_.forward();
  ready_buckets_.begin_step();
  trainer_.backward(&ready_buckets_);
  communicator_->wait(reductions_.back());  // and with it for those before
}

// In place: a bucket's averages, or the rank's part of them, take the place of its gradients.
void Workload::start_reduction(std::size_t bucket) {
  const ParameterSet& parameters = trainer_.parameters();
  const Tensor gradients = parameters.gradients(buckets()[bucket]);
  if (settings_.variant == Variant::zero1) {
    if (bucket + 1 == buckets().size()) clear_padding();
    reductions_[bucket] = communicator_->reduce_scatter(
        gradients, parameters.gradients(trainer_.optimizer().ranges()[bucket]), Reduction::average);
  } else {
    reductions_[bucket] = communicator_->all_reduce(gradients, gradients, Reduction::average);
  }
}

// A reduce-scatter leaves the parts of others undefined, and no backward writes the padding anew.
void Workload::clear_padding() {
  const ParameterSet& parameters = trainer_.parameters();
  if (const std::int64_t n = parameters.tail_elements(); n > 0)
    trainer_.backend().run(op::Fill{.x = parameters.gradients({arena_.end - n, arena_.end}), .value = 0.0});
}

void Workload::refresh_copy_around(const ElementRange& whole, const ElementRange& own) {
  const Tensor copy = trainer_.parameters().compute_copy();
  if (!copy) return;
  for (const ElementRange& range : {ElementRange{whole.begin, own.begin}, ElementRange{own.end, whole.end}})
    if (range.elements() > 0)
      trainer_.backend().run(
          op::Copy{.to = copy.slice(0, range.begin, range.elements()), .from = trainer_.parameters().values(range)});
}

void Workload::finish(const Launch& launch) {
  assay::memory_moment(host_, "after_step");
  const assay::comm::Totals totals = communicator_->take_totals();
  const auto steps = static_cast<double>(steps_);
  double loss = 0;
  for (const double of_rank : assay::comm::exchange(host_, "sharded_optimizer.loss", trainer_.last_loss()))
    loss += of_rank;
  report_parameters(launch, trainer_);
  launch.report(loss_metric, loss / static_cast<double>(communicator_->size()));
  launch.report(optimizer_state_bytes_metric, trainer_.optimizer().moment_bytes());
  launch.report(shard_padding_bytes_metric, padding_bytes());
  launch.report(communication_bytes_metric, static_cast<double>(totals.bytes) / steps);
  // Within a graph: how long they took nobody knows.
  if (totals.untimed == 0) launch.report(communication_ms_metric, totals.busy_ms / steps);
  launch.report(buckets_metric, buckets().size());
}

// The state of an element is what the optimizer keeps for all of its own, divided by their number.
std::int64_t Workload::padding_bytes() const {
  const ParameterSet& parameters = trainer_.parameters();
  const auto state = static_cast<std::int64_t>(trainer_.optimizer().moment_bytes());
  std::int64_t owned = 0;
  for (const ElementRange& range : trainer_.optimizer().ranges()) owned += range.elements();
  return parameters.tail_elements() * (state / owned);
}

}  // namespace sharded_optimizer
