// Products of a backward beside collectives may leave multiprocessors to these.
#pragma once
#include <assay/train/trainer.hpp>
#include <cstdint>
#include <functional>

namespace assay::parallel {

// For Trainer::setup: enqueues what it prepares, and, if `left` is not 0, a backward of products that leave this many.
// After set-up leave_multiprocessors(left) holds, and 0 while the communicator is silent.
inline void enqueue_beside_collectives(train::Trainer& trainer, std::int32_t left,
                                       const std::function<void()>& enqueue) {
  enqueue();
  if (left == 0) return;
  trainer.leave_multiprocessors(left);
  trainer.backward_of(trainer.micro_batches() - 1, nullptr);  // only this one leaves them
}
// The same of the trainer's own step.
inline void enqueue_beside_collectives(train::Trainer& trainer, std::int32_t left) {
  enqueue_beside_collectives(trainer, left, [&] { trainer.enqueue_step(); });
}

}  // namespace assay::parallel
