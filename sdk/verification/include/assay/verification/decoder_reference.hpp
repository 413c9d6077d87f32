// The decoder of assay/models/decoder.hpp once more, forward and backward in float64 on the host, for the gradients
// that every precision is compared with. Written from the model's formulas, sharing nothing with the backends.
#pragma once
#include <assay/models/decoder.hpp>
#include <cstdint>
#include <vector>

namespace assay::verification {

struct DecoderGradients {
  double loss = 0;                            // mean over the labels >= 0
  std::vector<std::vector<float>> gradients;  // by parameter; rounded once, at the end
};

// `config`: the shape; its precision and paths are not looked at. `weights` by parameter, in the order of `set`; tokens
// and labels [batch * context].
DecoderGradients decoder_gradients(const models::DecoderConfig& config, const train::ParameterSet& set,
                                   const models::DecoderParameters& ids, const std::vector<std::vector<float>>& weights,
                                   const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& labels);

}  // namespace assay::verification
