// A step of the workload, in its phases: the same where it marks them, and where it is captured without.
#pragma once
#include "workload.hpp"

namespace sharded_optimizer {

template <class AnyLaunch>
void Workload::enqueue_step(const AnyLaunch& launch) {
  assay::train::accounted_step(trainer_, [&] {
    ready_buckets_.begin_step();
    forward_and_backward(trainer_, launch, &ready_buckets_);
    switch (settings_.variant) {
      case Variant::baseline: return update_everything(launch);
      case Variant::broadcast: return update_and_broadcast(launch);
      case Variant::zero1: return matrix_shares_ ? update_matrices_and_broadcast(launch) : update_and_gather(launch);
    }
  });
}

template <class AnyLaunch>
void Workload::wait_for_gradients(const AnyLaunch& launch) {
  const auto phase = launch.phase(gradient_wait_phase);
  communicator().wait(reductions_.back());  // and with it for those before
}

template <class AnyLaunch>
void Workload::update_everything(const AnyLaunch& launch) {
  wait_for_gradients(launch);
  const auto phase = launch.phase(assay::train::optimizer_phase);
  trainer_.update();
}

template <class AnyLaunch>
void Workload::update_and_broadcast(const AnyLaunch& launch) {
  update_everything(launch);
  const auto phase = launch.phase(parameter_wait_phase);
  assay::comm::Ticket last = 0;
  if (matrix_shares_) {
    for (std::size_t i = 0; i < buckets().size(); ++i)
      for (const MatrixShares::Piece& piece : matrix_shares_->pieces(i)) last = send(piece);
    communicator().wait(send_exact_weights(last));
    return receive_exact_weights();
  }
  for (std::int32_t owner = 0; owner < communicator().size(); ++owner) {
    const assay::train::ElementRange part = assay::parallel::shard_of(arena_, owner, communicator().size());
    communicator().wait(last = communicator().broadcast(sent(part), owner));
  }
  communicator().wait(send_exact_weights(last));
  receive_exact_weights();
}

// While a bucket's part is updated, the gradients of later buckets and the weights of earlier ones are on their way.
template <class AnyLaunch>
void Workload::update_and_gather(const AnyLaunch& launch) {
  const assay::train::Optimizer& optimizer = trainer_.optimizer();
  assay::compute::Backend& backend = trainer_.backend();
  const std::size_t count = buckets().size();
  assay::comm::Ticket last = 0;
  optimizer.begin_step(backend,
                       trainer_.scaler());  // no precision of this workload scales its loss: no gradient is read
  for (std::size_t i = 0; i < count; ++i) {
    {
      const auto phase = launch.phase(gradient_wait_phase);
      communicator().wait(reductions_[i]);
    }
    const auto phase = launch.phase(assay::train::optimizer_phase);
    optimizer.step_range(backend, trainer_.scaler(), i);
    last = communicator().all_gather(sent(optimizer.ranges()[i]), sent(buckets()[i]));
  }
  optimizer.end_step(backend, trainer_.scaler());
  const auto phase = launch.phase(parameter_wait_phase);
  communicator().wait(send_exact_weights(last));  // and with it for those before
  receive_exact_weights();
}

// The rank updates stretches without matrices bucket by bucket, and then its matrices shape by shape, in batches, when
// all gradients are here. The weights of one shape travel while the next one is updated. Every rank goes through the
// shapes of all ranks, so that all send in one order.
template <class AnyLaunch>
void Workload::update_matrices_and_broadcast(const AnyLaunch& launch) {
  const assay::train::Optimizer& optimizer = trainer_.optimizer();
  assay::compute::Backend& backend = trainer_.backend();
  assay::comm::Ticket last = 0;
  optimizer.begin_step(backend, trainer_.scaler());
  for (std::size_t i = 0; i < buckets().size(); ++i) {
    {
      const auto phase = launch.phase(gradient_wait_phase);
      communicator().wait(reductions_[i]);
    }
    const auto phase = launch.phase(assay::train::optimizer_phase);
    for (const MatrixShares::Piece& piece : matrix_shares_->pieces(i)) {
      if (piece.owner == communicator().rank()) optimizer.step_stretch(backend, trainer_.scaler(), piece.range);
      if (!piece.has_matrices()) last = send(piece);
    }
  }
  {
    const auto phase = launch.phase(assay::train::optimizer_phase);
    const std::vector<assay::train::MatrixShape>& shapes = matrix_shares_->shapes();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      optimizer.step_matrices(backend, trainer_.scaler(), shapes[i]);
      last = send_matrices(static_cast<std::int32_t>(i), last);
    }
    optimizer.end_step_of_shapes(backend, trainer_.scaler());
  }
  const auto phase = launch.phase(parameter_wait_phase);
  communicator().wait(send_exact_weights(last));  // and with it for those before
  receive_exact_weights();
}

}  // namespace sharded_optimizer
