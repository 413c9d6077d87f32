// What a verification compares an encoder-decoder with, besides its other path: float64, for the gradients of a few
// tokens, by the operations and the formats of the timed model (encoder_decoder_reference.hpp). Two paths of one model
// share its code, so an error of both does not show between them.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/encoder_decoder_trainer.hpp>

namespace assay::verification {

// What is compared: few samples, few tokens and few layers of the model, its width and its vocabulary. No decoder
// layers: not even one of each is affordable on the host.
models::EncoderDecoderConfig reference_shape(models::EncoderDecoderConfig timed);

// Without dropout and, if the model drops, with it, in the masks of seed, stream and step. From the starting weights,
// except those that start from one number. Also checks that each place of dropout has different masks. Overwrites
// parameters, gradients and activations; start() restores them. `loss_scale`: one at which gradients are finite. Throws
// WRONG_RESULT; in part if the model is too large for a reference.
Verified check_encoder_decoder_against_float64(const Host& host, models::EncoderDecoderTrainer& trainer,
                                               double loss_scale);

}  // namespace assay::verification
