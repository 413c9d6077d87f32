#include "workload.hpp"

#include <assay/workload/peak.hpp>

#include <assay/comm/exchange.hpp>
#include <assay/parallel/broadcast_parameters.hpp>
#include <assay/parallel/products_beside_collectives.hpp>

#include "step.hpp"

namespace sharded_optimizer {

namespace op = assay::compute::op;

using assay::comm::Reduction;
using assay::comm::Ticket;
using assay::compute::size_of;
using assay::compute::Tensor;
using assay::parallel::shard_of;
using assay::train::ElementRange;
using assay::train::ParameterSet;

Workload::Workload(const assay::Case& c)
    : host_(c.host()),
      settings_(c),
      asked_(c),
      trainer_(host_, settings_.trainer),
      ready_buckets_(trainer_.parameters(),
                     assay::parallel::plan_buckets(trainer_.parameters(), assay::parallel::bucket_options(
                                                                              settings_.communication.bucket_bytes,
                                                                              settings_.communication.last_bucket_bytes,
                                                                              settings_.bucket_multiple())),
                     [this](std::size_t bucket) { start_reduction(bucket); }),
      arena_{0, trainer_.parameters().arena_elements()},
      matrix_shares_(settings_.shares_matrices
                         ? std::make_optional<MatrixShares>(trainer_.parameters(), buckets(), c.rank_count())
                         : std::nullopt),
      exact_weights_(trainer_.parameters(), assay::models::decoder_blocks(trainer_.ids()).resident.parameters,
                     owned_by_rank()),
      reductions_(buckets().size()) {
  trainer_.optimizer().restrict_to(owned_by(c.rank()));
}

std::vector<ElementRange> Workload::owned_by(std::int32_t rank) const {
  if (matrix_shares_) return matrix_shares_->owned_by(rank);
  return owned_ranges(settings_.variant, buckets(), arena_.end, rank,
                      static_cast<std::int32_t>(settings_.trainer.data_ranks));
}

// Of the variants that share out: the baseline's ranks update everything, and send nothing.
std::vector<std::vector<ElementRange>> Workload::owned_by_rank() const {
  std::vector<std::vector<ElementRange>> owned;
  if (settings_.variant == Variant::baseline) return owned;
  const auto ranks = static_cast<std::int32_t>(settings_.trainer.data_ranks);
  for (std::int32_t rank = 0; rank < ranks; ++rank) owned.push_back(owned_by(rank));
  return owned;
}

assay::Work Workload::work() const {
  const ParameterSet& parameters = trainer_.parameters();
  const auto n = static_cast<std::uint64_t>(parameters.parameter_count());
  const assay::workload::PrecisionPolicy& p = parameters.policy();
  std::uint64_t updated = 0;
  for (const ElementRange& range : trainer_.optimizer().ranges())
    updated += static_cast<std::uint64_t>(range.elements());
  // Weights are read by forward and by backward, which writes the gradients, and from the second micro-batch on reads
  // them, too; the update reads gradient, weight and moments, and writes all but the gradient. Communication and
  // activations are left out: a lower bound.
  const auto micro_batches = static_cast<std::uint64_t>(trainer_.micro_batches());
  const std::uint64_t step =
      n * (2 * micro_batches * size_of(p.activation) + (2 * micro_batches - 1) * size_of(p.gradient));
  const std::uint64_t update = updated * (size_of(p.gradient) + 2 * size_of(p.parameter)) +
                               2 * static_cast<std::uint64_t>(trainer_.optimizer().moment_bytes());
  assay::Work work = assay::models::decoder_training_work(settings_.trainer.model);
  work.bytes = step + update;
  return work;
}

assay::Peak Workload::peak(const Launch& launch) {
  return assay::workload::measure_peak(host_, launch, settings_.trainer.model.precision);
}

// Memory is taken in the order in which a framework would come to it, with a moment after each part.
void Workload::setup(const Launch& launch) {
  assay::train::SetupMoments moments;
  moments.parameter_memory = take_gathered_parameters(registered_parameters_, steps_, host_, launch,
                                                      settings_.communication, settings_.communication.gathers);
  moments.parameters_taken = [&] { assay::memory_moment(host_, "after_init"); };
  moments.step_taken = [&] {
    open_and_register(steps_, host_, launch, settings_.communication, settings_.communication.gathers, trainer_);
    if (const std::size_t bytes = exact_weights_.message_bytes(); bytes > 0)
      exact_message_ = assay::DeviceMemory(host_, ASSAY_MEMORY_COMMUNICATION, bytes, "weights of norms");
    exact_weights_.bind(exact_message_.data());
    assay::memory_moment(host_, "before_state");
  };
  const auto enqueue = [&] {
    assay::parallel::enqueue_beside_collectives(trainer_, settings_.left_multiprocessors,
                                                [&] { enqueue_without_communication(); });
  };
  trainer_.setup(launch, enqueue, moments);
  if (settings_.graph) steps_.capture(trainer_, [&] { enqueue_step(launch); });
  begin_from_rank_0();
  assay::memory_moment(host_, "before_step");
}

void Workload::begin_from_rank_0() {
  exact_weights_.clear(trainer_.backend());
  assay::parallel::broadcast_parameters(trainer_, communicator());
  communicator().take_totals();  // from here on they count steps alone
}

assay::Account Workload::account(const Launch&) { return trainer_.account(); }

void Workload::restart(const Launch&) {
  trainer_.start();
  begin_from_rank_0();
}

void Workload::enqueue_without_communication() {
  forward_and_backward(trainer_, assay::train::UnmarkedLaunch());
  clear_padding();
  trainer_.update();
  const auto rank = static_cast<std::int32_t>(settings_.trainer.data_rank);
  exact_weights_.clear(trainer_.backend());
  exact_weights_.pack(trainer_.backend(), rank);
  exact_weights_.unpack(trainer_.backend(), rank);
}

void Workload::run(const Launch& launch) {
  steps_.run(launch, host_, [&] { enqueue_step(launch); });
}

void Workload::silence(bool silent) {
  steps_.silence(silent);
  trainer_.leave_multiprocessors(silent ? 0 : settings_.left_multiprocessors);
  if (silent) steps_.capture_silent(trainer_, [&] { enqueue_step(assay::train::UnmarkedLaunch{}); });
}

// In place: a bucket's averages, or the rank's part of them, take the place of its gradients. Whole matrices go to
// their owners one by one.
void Workload::start_reduction(std::size_t bucket) {
  const ParameterSet& parameters = trainer_.parameters();
  const Tensor gradients = parameters.gradients(buckets()[bucket]);
  if (settings_.variant == Variant::zero1 && matrix_shares_) {
    for (const MatrixShares::Piece& piece : matrix_shares_->pieces(bucket))
      reductions_[bucket] = communicator().reduce(parameters.gradients(piece.range), piece.owner, Reduction::average);
  } else if (settings_.variant == Variant::zero1) {
    if (bucket + 1 == buckets().size()) clear_padding();
    reductions_[bucket] = communicator().reduce_scatter(
        gradients, parameters.gradients(trainer_.optimizer().ranges()[bucket]), Reduction::average);
  } else {
    reductions_[bucket] = communicator().all_reduce(gradients, gradients, Reduction::average);
  }
}

// A reduce-scatter leaves the parts of others undefined, and no backward writes the padding anew.
void Workload::clear_padding() {
  const ParameterSet& parameters = trainer_.parameters();
  if (const std::int64_t n = parameters.tail_elements(); n > 0)
    trainer_.backend().run(op::Fill{.x = parameters.gradients({arena_.end - n, arena_.end}), .value = 0.0});
}

Tensor Workload::sent(const ElementRange& range) const {
  const Tensor copy = trainer_.parameters().compute_copy();
  return copy ? copy.slice(0, range.begin, range.elements()) : trainer_.parameters().values(range);
}

Ticket Workload::send(const MatrixShares::Piece& piece) {
  return communicator().broadcast(sent(piece.range), piece.owner);
}

// Pieces of which some matrix has this shape, and the others' had their turn before.
Ticket Workload::send_matrices(std::int32_t shape, Ticket last) {
  for (std::size_t i = 0; i < buckets().size(); ++i)
    for (const MatrixShares::Piece& piece : matrix_shares_->pieces(i))
      if (piece.last_shape == shape) last = send(piece);
  return last;
}

Ticket Workload::send_exact_weights(Ticket last) {
  if (exact_weights_.message_bytes() == 0) return last;
  exact_weights_.pack(trainer_.backend(), communicator().rank());
  return exact_weights_.gather(communicator());
}

void Workload::receive_exact_weights() { exact_weights_.unpack(trainer_.backend(), communicator().rank()); }

void Workload::finish(const Launch& launch) {
  assay::memory_moment(host_, "after_step");
  report_parameters(launch, trainer_);
  launch.report(loss_metric, assay::comm::mean_of_ranks(host_, "sharded_optimizer.loss", trainer_.last_loss()));
  launch.report(optimizer_state_bytes_metric, trainer_.optimizer().moment_bytes());
  launch.report(shard_padding_bytes_metric, padding_bytes());
  launch.report(buckets_metric, buckets().size());
  if (matrix_shares_) launch.report(matrix_imbalance_metric, matrix_shares_->imbalance());
  const auto step = steps_.take_measured();
  if (!step) return;
  launch.report(assay::parallel::communication_bytes_metric, step->bytes);
  if (step->times) launch.report(assay::parallel::communication_ms_metric, step->times->busy_ms);
}

// The state of an element is what the optimizer keeps for all of its own, divided by their number.
std::int64_t Workload::padding_bytes() const {
  const ParameterSet& parameters = trainer_.parameters();
  if (parameters.tail_elements() == 0) return 0;
  const auto state = static_cast<std::int64_t>(trainer_.optimizer().moment_bytes());
  std::int64_t owned = 0;
  for (const ElementRange& range : trainer_.optimizer().ranges()) owned += range.elements();
  return parameters.tail_elements() * (state / owned);
}

}  // namespace sharded_optimizer
