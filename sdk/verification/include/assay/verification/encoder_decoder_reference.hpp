// A second encoder-decoder, forward and backward in float64, for the gradients that every precision is compared with:
// states of a few tokens on the host, products with parameters where these are. It follows PyTorch's definition of
// nn.Transformer (batch_first, post-norm, ReLU), and uses only the model's shapes and parameter ids.
//
//   x = embedding[token] + position[place in the sequence]: nothing scales or drops it, and both stacks share both
//   tables encoder layer: x = norm1(x + D(attention(x, x))), x = norm2(x + D(w2 D(relu(w1 x + b1)) + b2)) decoder
//   layer: x = norm1(x + D(causal attention(x, x))), x = norm2(x + D(attention(x, memory))),
//                  x = norm3(x + D(w2 D(relu(w1 x + b1)) + b2))
//   memory = norm(encoder's last x), logits = head(norm(decoder's last x)) + bias, loss = mean cross-entropy
//   attention(x, m): heads of softmax((q k') / sqrt(head width)), then D, then v; q of x, k and v of m; output
//   projection
//
// No token is padding, so that no mask but the causal one exists. D is dropout, whose masks are data here.
#pragma once
#include <assay/models/encoder_decoder.hpp>
#include <assay/verification/reference_parameters.hpp>
#include <cstdint>
#include <vector>

namespace assay::verification {

// What rounding or chance decides in a step, for the reference to decide alike. Empty lists: no dropout, and the sign
// of the reference's own state.
struct EncoderDecoderDecisions {
  // By place of dropout, what each element is multiplied by: 0 or 1 / (1 - probability). Places come in the order of
  // the forward: of an encoder layer the attention's weights [B, heads, queries, keys], the attention's result
  // [rows, d_model], the hidden states [rows, d_ff], the feed-forward's result; of a decoder layer two attentions.
  std::vector<std::vector<float>> masks;
  // By feed-forward, the encoder's first: the ReLUs' states [rows, d_ff]. Those above 0 pass.
  std::vector<std::vector<float>> states;
};

struct EncoderDecoderResult {
  double loss = 0;
  std::vector<float> logits;  // [target rows, vocabulary]
  // How far beyond 0 the reference has a hidden state on which the given one decides otherwise, by the root mean square
  // of its feed-forward: a rounding, where the given one is right.
  double farthest_state = 0;
};
struct EncoderDecoderGradients : EncoderDecoderResult {
  std::vector<std::vector<float>> gradients;  // by parameter; rounded once, at the end
};

// Places of dropout in a step.
std::size_t dropout_places(const models::EncoderDecoderConfig& config);

// Keeps the gradients by the parameters. The other arguments are those of encoder_decoder_gradients().
EncoderDecoderResult encoder_decoder_reference(const models::EncoderDecoderConfig& config,
                                               const models::EncoderDecoderParameters& ids,
                                               ReferenceParameters& parameters, const std::vector<std::int64_t>& batch,
                                               const EncoderDecoderDecisions& decisions = {});

// `config`: the shape; its precision and paths are not looked at. `ids` has as many layers as are computed. `weights`
// by parameter, in the order of `set`; `batch` as models::EncoderDecoderModel::forward takes it.
EncoderDecoderGradients encoder_decoder_gradients(const models::EncoderDecoderConfig& config,
                                                  const train::ParameterSet& set,
                                                  const models::EncoderDecoderParameters& ids,
                                                  const std::vector<std::vector<float>>& weights,
                                                  const std::vector<std::int64_t>& batch,
                                                  const EncoderDecoderDecisions& decisions = {});

}  // namespace assay::verification
