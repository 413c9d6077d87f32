// Verifications of workloads in which each rank trains the same model on its part of the batch.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/trainer.hpp>
#include <functional>
#include <string>
#include <string_view>

namespace assay::verification {

// Makes the state before the first step on rank 0 alone, and broadcasts it. Throws WRONG_RESULT when a rank then has
// other weights, or rank 0 no longer its own. Every rank calls it, once per name.
void check_broadcast(const Host& host, std::string_view name, train::Trainer& trainer, comm::Communicator& communicator,
                     double loss_scale = train::LossScaler::start);

// find_finite_gradients (path_check.hpp) on every rank, of what it computes alone: the loss scale that serves them all.
// `step` enqueues what leaves gradients, without communication. Every rank calls it, once per name.
double find_finite_gradients_of_ranks(const Host& host, std::string_view name, train::Trainer& trainer,
                                      const std::function<void()>& step);

// A hash of every bit that a step reads of the parameters: the values, and the compute copy where there is one. Blocks.
std::uint64_t hash_of_weights(const train::Trainer& trainer);

// Every rank calls it, once per name. Returns what was checked, or throws WRONG_RESULT that names the ranks whose hash
// is not rank 0's.
std::string check_same_weights(const Host& host, std::string_view name, std::uint64_t hash, int steps);

}  // namespace assay::verification
