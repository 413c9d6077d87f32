// What a decoder's step has made, in a safetensors file.
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <string>

namespace assay::models {

// Logits (of a model that keeps them) and, with a backward, loss and gradients, as grad.NAME; weights as weight.NAME.
// In fp32. Blocks.
void dump_step(const DecoderTrainer& trainer, const std::string& path);

}  // namespace assay::models
