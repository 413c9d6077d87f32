// What workloads in which several ranks train a decoder check alike, beside the average of their gradients
// (average_check.hpp): that each rank has its part of the batch, and that its own gradients are right.
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <assay/verification/average_check.hpp>
#include <assay/verification/decoder_check.hpp>
#include <string_view>

namespace assay::verification {

OwnData own_data(const models::DecoderTrainer& trainer);

// Every rank calls it, once per name. Throws WRONG_RESULT on every rank if one rank's tokens or labels are not those of
// its seed and place in the batch of all ranks (decoder_data_check.hpp), or not its part of rank 0's batch (all of it,
// if they share one batch). Returns a text on the result.
std::string check_parts(const Host& host, std::string_view name, const models::DecoderTrainer& trainer);

// Compares every operation of this rank's forward and backward with float64, and its loss and gradients, from the
// starting weights, with those of the path that shares the least with the timed one (opposite_path). If that does not
// fit into memory, on half of the sequences, and so on; in part if not one fits. In fp16 every parameter's gradient
// must be finite at some loss scale. Spoils the activations; no step may follow.
Verified check_own_gradients(models::DecoderTrainer& trainer);

// Is the model that a rank trains the right one? Compares it, as its trainer enqueues it, with the same operations on
// the batch as it lies there; then check_own_gradients; then with float64, each rank on different tokens
// (decoder_check.hpp). No step may follow. If all ranks hold the same batch, only rank 0 compares paths. No rank waits
// for another one. In part if there is no memory for one of these.
Verified check_own_model(const Host& host, models::DecoderTrainer& trainer);
Verified check_own_model(const Host& host, models::DecoderTrainer& trainer, const SharedWork& shared);

}  // namespace assay::verification
