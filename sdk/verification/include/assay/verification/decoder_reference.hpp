// The decoder of assay/models/decoder.hpp once more, forward and backward in float64, for the gradients that every
// precision is compared with: states of a few tokens on the host, products with parameters where these are. Written
// from the model's formulas, sharing nothing with the backends, and with sdk/models no more than the numbers of its
// configuration and the names of its parameters.
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

// Keeps the gradients by the parameters, and returns the loss. The other arguments are those of decoder_gradients().
double decoder_reference(const models::DecoderConfig& config, const train::ParameterSet& set,
                         ReferenceParameters& parameters, const std::vector<std::int64_t>& tokens,
                         const std::vector<std::int64_t>& labels);

// `config`: the shape; its precision, paths and split are not looked at. `weights` by parameter, in the order of `set`,
// in which parameters are found by their names; tokens and labels [batch * context].
DecoderGradients decoder_gradients(const models::DecoderConfig& config, const train::ParameterSet& set,
                                   const std::vector<std::vector<float>>& weights,
                                   const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& labels);

}  // namespace assay::verification
