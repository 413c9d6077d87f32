// Workloads in which each rank trains the same model on its part of the batch share these functions.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/trainer.hpp>
#include <string>
#include <string_view>

namespace assay::train {

// Sends rank 0's parameters to all, so that every rank starts from the same bits, also one whose generator differs.
// Blocks.
void broadcast_parameters(const Trainer& trainer, comm::Communicator& communicator);

// A hash of every bit that a step reads of the parameters: the values, and the compute copy where there is one. Blocks.
std::uint64_t hash_of_weights(const Trainer& trainer);

// Every rank calls it, once per name. Returns what was checked, or throws WRONG_RESULT that names the ranks whose hash
// is not rank 0's.
std::string check_same_weights(const Host& host, std::string_view name, std::uint64_t hash, int steps);

}  // namespace assay::train
