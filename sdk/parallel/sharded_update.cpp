#include "assay/parallel/sharded_update.hpp"

namespace assay::parallel {

namespace op = compute::op;

using comm::Reduction;
using comm::Ticket;
using compute::size_of;
using compute::Tensor;
using train::ElementRange;
using train::ParameterSet;

ShardedUpdate::ShardedUpdate(train::Trainer& trainer, std::int32_t rank, std::int32_t ranks, const Options& options,
                             const std::vector<ParameterSet::Id>& exact)
    : trainer_(trainer),
      rank_(rank),
      ranks_(ranks),
      options_(options),
      ready_buckets_(trainer.parameters(),
                     plan_buckets(trainer.parameters(), bucket_options(options.bucket_bytes, options.last_bucket_bytes,
                                                                       options.bucket_multiple)),
                     [this](std::size_t bucket) { start_reduction(bucket); }),
      arena_{0, trainer.parameters().arena_elements()},
      matrix_shares_(options.shares_matrices ? std::make_optional<MatrixShares>(trainer.parameters(), buckets(), ranks)
                                             : std::nullopt),
      exact_weights_(trainer.parameters(), exact, owned_by_rank()),
      reductions_(buckets().size()) {
  trainer_.optimizer().restrict_to(owned_by(rank));
}

std::vector<ElementRange> ShardedUpdate::owned_by(std::int32_t rank) const {
  if (matrix_shares_) return matrix_shares_->owned_by(rank);
  return owned_ranges(options_.sharing, buckets(), arena_.end, rank, ranks_);
}

// Of the variants that share out: the baseline's ranks update everything, and send nothing.
std::vector<std::vector<ElementRange>> ShardedUpdate::owned_by_rank() const {
  std::vector<std::vector<ElementRange>> owned;
  if (options_.sharing == StateSharing::baseline) return owned;
  for (std::int32_t rank = 0; rank < ranks_; ++rank) owned.push_back(owned_by(rank));
  return owned;
}

std::vector<std::size_t> ShardedUpdate::gathered_bytes() const {
  const workload::PrecisionPolicy& policy = trainer_.parameters().policy();
  const std::size_t element = size_of(policy.compute_copy() ? policy.activation : policy.parameter);
  std::vector<std::size_t> bytes;
  for (const ElementRange& bucket : buckets()) bytes.push_back(static_cast<std::size_t>(bucket.elements()) * element);
  return bytes;
}

std::uint64_t ShardedUpdate::moved_bytes() const {
  const ParameterSet& parameters = trainer_.parameters();
  const auto n = static_cast<std::uint64_t>(parameters.parameter_count());
  const workload::PrecisionPolicy& p = parameters.policy();
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
  return step + update;
}

void ShardedUpdate::enqueue_without_communication() {
  forward_and_backward(trainer_, train::UnmarkedLaunch());
  clear_padding();
  trainer_.update();
  exact_weights_.clear(trainer_.backend());
  exact_weights_.pack(trainer_.backend(), rank_);
  exact_weights_.unpack(trainer_.backend(), rank_);
}

// In place: a bucket's averages, or the rank's part of them, take the place of its gradients. Whole matrices go to
// their owners one by one.
void ShardedUpdate::start_reduction(std::size_t bucket) {
  const ParameterSet& parameters = trainer_.parameters();
  const Tensor gradients = parameters.gradients(buckets()[bucket]);
  if (options_.sharing == StateSharing::zero1 && matrix_shares_) {
    for (const MatrixShares::Piece& piece : matrix_shares_->pieces(bucket))
      reductions_[bucket] = communicator().reduce(parameters.gradients(piece.range), piece.owner, Reduction::average);
  } else if (options_.sharing == StateSharing::zero1) {
    if (bucket + 1 == buckets().size()) clear_padding();
    reductions_[bucket] = communicator().reduce_scatter(
        gradients, parameters.gradients(trainer_.optimizer().ranges()[bucket]), Reduction::average);
  } else {
    reductions_[bucket] = communicator().all_reduce(gradients, gradients, Reduction::average);
  }
}

// A reduce-scatter leaves the parts of others undefined, and no backward writes the padding anew.
void ShardedUpdate::clear_padding() {
  const ParameterSet& parameters = trainer_.parameters();
  if (const std::int64_t n = parameters.tail_elements(); n > 0)
    trainer_.backend().run(op::Fill{.x = parameters.gradients({arena_.end - n, arena_.end}), .value = 0.0});
}

void ShardedUpdate::enqueue(const train::StepMarks& launch) {
  train::accounted_step(trainer_, [&] {
    ready_buckets_.begin_step();
    forward_and_backward(trainer_, launch, &ready_buckets_);
    switch (options_.sharing) {
      case StateSharing::baseline: return update_everything(launch);
      case StateSharing::broadcast: return update_and_broadcast(launch);
      case StateSharing::zero1:
        return matrix_shares_ ? update_matrices_and_broadcast(launch) : update_and_gather(launch);
    }
  });
}

void ShardedUpdate::wait_for_gradients(const train::StepMarks& launch) {
  const auto phase = launch.phase(train::communication_wait_phase);
  communicator().wait(reductions_.back());  // and with it for those before
}

void ShardedUpdate::update_everything(const train::StepMarks& launch) {
  wait_for_gradients(launch);
  const auto phase = launch.phase(train::optimizer_phase);
  trainer_.update();
}

void ShardedUpdate::update_and_broadcast(const train::StepMarks& launch) {
  update_everything(launch);
  const auto phase = launch.phase(train::parameter_wait_phase);
  comm::Ticket last = 0;
  if (matrix_shares_) {
    for (std::size_t i = 0; i < buckets().size(); ++i)
      for (const MatrixShares::Piece& piece : matrix_shares_->pieces(i)) last = send(piece);
    communicator().wait(send_exact_weights(last));
    return receive_exact_weights();
  }
  for (std::int32_t owner = 0; owner < communicator().size(); ++owner) {
    const train::ElementRange part = shard_of(arena_, owner, communicator().size());
    communicator().wait(last = communicator().broadcast(sent(part), owner));
  }
  communicator().wait(send_exact_weights(last));
  receive_exact_weights();
}

// While a bucket's part is updated, the gradients of later buckets and the weights of earlier ones are on their way.
void ShardedUpdate::update_and_gather(const train::StepMarks& launch) {
  const train::Optimizer& optimizer = trainer_.optimizer();
  compute::Backend& backend = trainer_.backend();
  const std::size_t count = buckets().size();
  comm::Ticket last = 0;
  optimizer.begin_step(backend,
                       trainer_.scaler());  // no precision of this workload scales its loss: no gradient is read
  for (std::size_t i = 0; i < count; ++i) {
    {
      const auto phase = launch.phase(train::communication_wait_phase);
      communicator().wait(reductions_[i]);
    }
    const auto phase = launch.phase(train::optimizer_phase);
    optimizer.step_range(backend, trainer_.scaler(), i);
    last = communicator().all_gather(sent(optimizer.ranges()[i]), sent(buckets()[i]));
  }
  optimizer.end_step(backend, trainer_.scaler());
  const auto phase = launch.phase(train::parameter_wait_phase);
  communicator().wait(send_exact_weights(last));  // and with it for those before
  receive_exact_weights();
}

// The rank updates stretches without matrices bucket by bucket, and then its matrices shape by shape, in batches, when
// all gradients are here. The weights of one shape travel while the next one is updated. Every rank goes through the
// shapes of all ranks, so that all send in one order.
void ShardedUpdate::update_matrices_and_broadcast(const train::StepMarks& launch) {
  const train::Optimizer& optimizer = trainer_.optimizer();
  compute::Backend& backend = trainer_.backend();
  comm::Ticket last = 0;
  optimizer.begin_step(backend, trainer_.scaler());
  for (std::size_t i = 0; i < buckets().size(); ++i) {
    {
      const auto phase = launch.phase(train::communication_wait_phase);
      communicator().wait(reductions_[i]);
    }
    const auto phase = launch.phase(train::optimizer_phase);
    for (const MatrixShares::Piece& piece : matrix_shares_->pieces(i)) {
      if (piece.owner == communicator().rank()) optimizer.step_stretch(backend, trainer_.scaler(), piece.range);
      if (!piece.has_matrices()) last = send(piece);
    }
  }
  {
    const auto phase = launch.phase(train::optimizer_phase);
    const std::vector<train::MatrixShape>& shapes = matrix_shares_->shapes();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      optimizer.step_matrices(backend, trainer_.scaler(), shapes[i]);
      last = send_matrices(static_cast<std::int32_t>(i), last);
    }
    optimizer.end_step_of_shapes(backend, trainer_.scaler());
  }
  const auto phase = launch.phase(train::parameter_wait_phase);
  communicator().wait(send_exact_weights(last));  // and with it for those before
  receive_exact_weights();
}

Tensor ShardedUpdate::sent(const ElementRange& range) const {
  const Tensor copy = trainer_.parameters().compute_copy();
  return copy ? copy.slice(0, range.begin, range.elements()) : trainer_.parameters().values(range);
}

Ticket ShardedUpdate::send(const MatrixShares::Piece& piece) {
  return communicator().broadcast(sent(piece.range), piece.owner);
}

// Pieces with a matrix of this shape, if the shapes of their other matrices had their turn before.
Ticket ShardedUpdate::send_matrices(std::int32_t shape, Ticket last) {
  for (std::size_t i = 0; i < buckets().size(); ++i)
    for (const MatrixShares::Piece& piece : matrix_shares_->pieces(i))
      if (piece.last_shape == shape) last = send(piece);
  return last;
}

Ticket ShardedUpdate::send_exact_weights(Ticket last) {
  if (exact_weights_.message_bytes() == 0) return last;
  exact_weights_.pack(trainer_.backend(), communicator().rank());
  return exact_weights_.gather(communicator());
}

void ShardedUpdate::receive_exact_weights() { exact_weights_.unpack(trainer_.backend(), communicator().rank()); }

// The state of an element is what the optimizer keeps for all of its elements, divided by their number.
std::int64_t ShardedUpdate::padding_bytes() const {
  const ParameterSet& parameters = trainer_.parameters();
  if (parameters.tail_elements() == 0) return 0;
  const auto state = static_cast<std::int64_t>(trainer_.optimizer().moment_bytes());
  std::int64_t owned = 0;
  for (const ElementRange& range : trainer_.optimizer().ranges()) owned += range.elements();
  return parameters.tail_elements() * (state / owned);
}

}  // namespace assay::parallel
