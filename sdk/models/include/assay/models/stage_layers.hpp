// Which layers the stages of a decoder have that ranks share out (DecoderStages).
#pragma once
#include <assay/models/decoder_config.hpp>
#include <cstdint>
#include <vector>

namespace assay::models {

struct StageDivision {
  std::int64_t layers = 1, ranks = 1, virtual_stages = 1;
  double head_layers = 0;  // the head's operations, in those of a layer
  StageBalance balance = StageBalance::work;
};

// The layers of each stage, in the order of the stages; the layers are at least as many as the stages.
//   work    The largest sum of a rank's operations is as small as layers allow. Each stage has a layer, and the last
//           one the head; each further layer goes to the rank that has least, and there to the stage that has least. Of
//           equals the first one takes it.
//   layers  As many layers in each stage, or one more in the first ones; the head does not count.
std::vector<std::int64_t> layers_of_stages(const StageDivision& division);

// The division of a configuration's layers. A layer's operations are the mean of all layers': with
// full_attention_every layers differ by their attention.
StageDivision stage_division(const DecoderConfig& config);
inline std::vector<std::int64_t> layers_of_stages(const DecoderConfig& config) {
  return layers_of_stages(stage_division(config));
}
// The operations of each rank's stages, in those of a layer.
std::vector<double> work_of_ranks(const StageDivision& division);

}  // namespace assay::models
