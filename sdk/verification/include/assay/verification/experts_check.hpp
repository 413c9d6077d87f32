// Which token went to which expert: read from the device, and checked.
#pragma once
#include <assay/models/decoder_trainer.hpp>
#include <assay/verification/decoder_reference.hpp>
#include <string>

namespace assay::verification {

// Of the model's last step. Blocks.
ChosenExperts chosen_experts(compute::Backend& backend, const models::DecoderModel& model);

// For the trainer's last step, in each layer with experts: every token has distinct, existing ones; drawn experts are
// those of the seed; and the counts by expert are those of the last micro-batch, N k together. Returns a text on the
// result, or throws WRONG_RESULT. Blocks.
std::string check_routing(const models::DecoderTrainer& trainer);

// Tokens by expert over all layers with experts, of the last micro-batch, and the mean losses of the router. Blocks.
struct RoutingFigures {
  double least = 0, mean = 0, most = 0, variation = 0;  // variation: the standard deviation over the mean
  double balance = 0, z = 0;
};
RoutingFigures routing_figures(compute::Backend& backend, const models::DecoderModel& model);

}  // namespace assay::verification
