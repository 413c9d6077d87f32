// A second decoder.hpp, forward and backward in float64, for the gradients that every precision is compared with:
// states of a few tokens on the host, products with parameters where these are. Written from the model's formulas; it
// shares nothing with the backends, and with sdk/models only the numbers of its configuration and the names of its
// parameters.
#pragma once
#include <assay/models/decoder.hpp>
#include <assay/verification/reference_parameters.hpp>
#include <cstdint>
#include <vector>

namespace assay::verification {

struct DecoderGradients {
  double loss = 0;                            // mean over the labels >= 0
  std::vector<std::vector<float>> gradients;  // by parameter; rounded once, at the end
};

// Which experts the tokens of a step went to, as the device has it.
struct ChosenExperts {
  std::vector<std::vector<std::int32_t>> by_layer;  // [rows, per_token]; of dense layers empty
  // If the router chose them, they must be the best by their logits, except for this share of the logits' root mean
  // square; infinite if they were drawn.
  double rounding = 0;
};

// Keeps the gradients by the parameters, and returns the loss. The other arguments are those of decoder_gradients().
// Without `chosen` it chooses itself; throws WRONG_RESULT where another choice is wrong.
double decoder_reference(const models::DecoderConfig& config, const train::ParameterSet& set,
                         ReferenceParameters& parameters, const std::vector<std::int64_t>& tokens,
                         const std::vector<std::int64_t>& labels, const ChosenExperts* chosen = nullptr);

// `config`: the shape; its precision, paths and split are ignored. The tokens of all micro-batches are one batch; each
// micro-batch has an equal part. `weights` by parameter, in the order of `set`, which finds parameters by name. tokens
// and labels: [batch * context].
DecoderGradients decoder_gradients(const models::DecoderConfig& config, const train::ParameterSet& set,
                                   const std::vector<std::vector<float>>& weights,
                                   const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& labels,
                                   const ChosenExperts* chosen = nullptr);

}  // namespace assay::verification
