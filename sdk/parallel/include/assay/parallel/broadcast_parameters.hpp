// The same weights on every rank before the first step.
#pragma once
#include <assay/comm/communicator.hpp>
#include <assay/train/trainer.hpp>

namespace assay::parallel {

// Sends rank 0's parameters to all, so that every rank starts from the same bits, also one whose generator differs.
// Blocks.
void broadcast_parameters(const train::Trainer& trainer, comm::Communicator& communicator);

}  // namespace assay::parallel
