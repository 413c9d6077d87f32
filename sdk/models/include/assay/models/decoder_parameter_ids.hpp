// The parameters of a decoder: which there are, in which order, what a rank has of them, and the blocks that they make.
#pragma once
#include <assay/compute/backend.hpp>

#include <assay/models/decoder_config.hpp>
#include <assay/train/block_parameters.hpp>
#include <assay/train/element_range.hpp>
#include <assay/train/parameters.hpp>
#include <cstdint>
#include <vector>

namespace assay::models {

// Ids of the parameters of one layer, in the order of the arena.
struct DecoderLayerParameters {
  train::ParameterSet::Id w2, w1, w3, ln2, output, q, k, v, ln1;
  train::ParameterSet::Id q_bias = 0, k_bias = 0, v_bias = 0;  // with qkv_bias
  train::ParameterSet::Id attention_norm = 0, ffw_norm = 0;    // with post_norms: at the ends of the branches
  train::ParameterSet::Id q_norm = 0, k_norm = 0;              // with qk_norm; adjacent
  train::ParameterSet::Id output_bias = 0;                     // with output_bias
  train::ParameterSet::Id sinks = 0;                           // with attention_sinks: [heads]
  LatentParameters latent = {};                                // with latent attention, in the place of k and v
  ExpertParameters experts = {};  // in the place of w2, w1 and w3, of a layer that has them
};
struct DecoderParameters {
  train::ParameterSet::Id lm_head, ln_final, embeddings;  // tied: lm_head is embeddings
  std::vector<DecoderLayerParameters> layers;
};

// Adds the parameters with the names that they have in safetensors files; matrices are (out, in). The initial values
// are normal with std sqrt(2 / (in + out)) for matrices and a tied embedding, std 1 for another embedding, ones for
// norms (zeros for those that count from one) and zeros for biases and sinks.
DecoderParameters add_decoder_parameters(train::ParameterSet& set, const DecoderConfig& config);

// Which part of the whole model's parameter one of a rank's is, where ranks split the model or share its experts.
struct DecoderPart {
  train::ParameterSet::Id whole;
  int dimension = -1;  // that is split; -1: none
  std::int64_t first = 0, count = 0;
  compute::Tensor of(const compute::Tensor& whole_tensor) const {
    return dimension < 0 ? whole_tensor : whole_tensor.slice(dimension, first, count);
  }
};
// By the rank's ids: `own` are its parameters, `whole` those of the same configuration on one rank.
std::vector<DecoderPart> decoder_parts(const DecoderConfig& config, const train::ParameterSet& own,
                                       const train::ParameterSet& whole);
// The arena's range of parameters that every rank has, with gradients that are each rank's terms of a sum. They are
// norms: of queries and keys, where a rank covers only its own heads, and the others, where a rank covers only its own
// rows. Empty if the model is not split.
train::ElementRange decoder_shared_range(const DecoderConfig& config, const train::ParameterSet& own,
                                         const DecoderParameters& ids);

// The blocks in which the parameters come and go: the embedding, each layer's matrices, the head, which is the
// embedding once more where it is tied. The weights of norms and the sinks are resident: they are few, and read in
// another format than the matrices.
train::ModelBlocks decoder_blocks(const DecoderParameters& ids);

}  // namespace assay::models
