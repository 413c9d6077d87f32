// Which parameters a decoder has, by its published description and not by sdk/models: their names are those of the
// safetensors files, and their dimensions and starting values follow from the shape.
#pragma once
#include <assay/models/decoder.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::verification {

struct DecoderParameter {
  std::string name;
  std::vector<std::int64_t> dims;  // (out, in) of matrices
  double mean = 0, deviation = 0;  // of the normal distribution that it starts from; 0: the mean itself
  bool of_norm = false;            // whatever it starts from
  // Whether operations read it as the optimizer has it: weights of norms and sinks.
  bool is_resident() const { return of_norm || name.ends_with(".sinks"); }
};

// Of a whole decoder, in no particular order.
std::vector<DecoderParameter> decoder_parameters_of(const models::DecoderConfig& config);

// Throws WRONG_RESULT where there is none of this name.
train::ParameterSet::Id decoder_parameter(const train::ParameterSet& set, std::string_view name);

// Throws WRONG_RESULT where `set` has other parameters, or they start from other distributions.
void check_decoder_parameters(const train::ParameterSet& set, const models::DecoderConfig& config);

// Of random weights after the start: throws WRONG_RESULT where what was drawn is not of these distributions. Blocks.
void check_drawn_parameters(compute::Backend& backend, const train::ParameterSet& set,
                            const models::DecoderConfig& config);

}  // namespace assay::verification
