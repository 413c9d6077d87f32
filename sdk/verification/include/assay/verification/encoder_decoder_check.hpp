// What a verification holds an encoder-decoder against, apart from its other path: float64, the gradients of a few
// tokens, by the operations and the formats of the model that was timed (encoder_decoder_reference.hpp). Two paths of
// one model share its code, and what is wrong in both does not show between them.
#pragma once
#include <assay/plugin.hpp>

#include <assay/models/encoder_decoder_trainer.hpp>

namespace assay::verification {

// What is compared: few samples, few tokens and few layers of the model, its width and its vocabulary. No decoder
// layers: not even one of each is affordable on the host.
models::EncoderDecoderConfig reference_shape(models::EncoderDecoderConfig timed);

// Without dropout and, where the model drops, with it, in the masks that seed, stream and step give. From the starting
// weights, but for those that start from one number. Also checks that each place of dropout has masks of its own.
// Overwrites parameters, gradients and activations: start() begins anew. `loss_scale`: at which gradients are finite.
// Throws WRONG_RESULT; in part where the model is too large for a reference.
Verified check_encoder_decoder_against_float64(const Host& host, models::EncoderDecoderTrainer& trainer,
                                               double loss_scale);

}  // namespace assay::verification
