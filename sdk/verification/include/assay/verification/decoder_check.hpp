// What verifications compare a decoder with: another path of the same backend, on the whole batch, and float64. The
// gradients of a few tokens, by the operations and the formats of the timed model, are compared with
// decoder_reference.hpp. Two paths of one backend share operations, so an error of both does not show between them.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/decoder_trainer.hpp>
#include <assay/verification/other_path.hpp>
#include <assay/verification/path_check.hpp>

namespace assay::verification {

// The loss of a decoder with random weights over this many labels: a final norm precedes the head, whatever the layers
// are.
StartingLoss starting_loss_of_decoder(const models::DecoderConfig& config, std::int64_t valid_rows);

// The path that shares the least with the one that was timed: the other kind of operations, the other attention, and
// recomputation, which also keeps its memory small. Attention by its definition makes its scores in parts beyond a
// context of 1024.
models::DecoderConfig opposite_path(models::DecoderConfig timed);
// The same for a shape that tiled attention does not serve: by the definition, in parts.
models::DecoderConfig opposite_path_by_definition(const models::DecoderConfig& timed);

// What two paths of one step of this decoder may differ by: path_tolerance(), with what few tokens and few words add.
// `labels` counts those that the mean loss is over: a file of inputs may leave few. Drawn ones all count, but for those
// across documents.
PathTolerance decoder_tolerance(const models::DecoderConfig& config, std::int64_t labels);
PathTolerance decoder_tolerance(const models::DecoderConfig& config);

// Ranks that hold the same model, and share the host's processors: each checks different tokens.
struct SharedWork {
  std::int64_t rank = 0, ranks = 1;
};

// What is compared: few sequences and layers of the model, its width and its vocabulary. No layers: not even one is
// affordable on the host.
models::DecoderConfig reference_shape(models::DecoderConfig timed, const SharedWork& shared = {});

// From the starting weights, with those of norms set to other values than 1, with tokens that repeat and a label that
// is left out. First checks which parameters exist, and that they start as they should. Overwrites parameters,
// gradients and activations; start() restores them. `loss_scale`: one at which gradients are finite. Throws
// WRONG_RESULT; in part if the model is too large for a reference. If one rank's share would be too much, only rank 0
// compares.
Verified check_against_float64(const Host& host, models::DecoderTrainer& trainer, double loss_scale,
                               const SharedWork& shared = {});

}  // namespace assay::verification
