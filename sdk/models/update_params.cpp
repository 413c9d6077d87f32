#include "assay/models/update_params.hpp"

#include <string>

namespace assay::models {

std::int32_t read_update(const Case& c, DecoderTrainerConfig& trainer) {
  trainer.update_beside_backward = c.choice("update", updates) == Update::beside_backward;
  trainer.update_in_products = c.choice("update", updates) == Update::in_products;
  if (trainer.update_beside_backward || trainer.update_in_products) {
    const auto refuse = [&](const char* why) {
      throw Error(
          ASSAY_INVALID_ARGUMENT,
          std::string("update = \"") + (trainer.update_in_products ? "in_products" : "beside_backward") + "\" " + why);
    };
    if (trainer.update_in_products && !trainer.model.experts.any())
      refuse("is of experts' products; expected a model with experts, or update = \"after_backward\"");
    if (!trainer.train_step) refuse("needs a training step; expected pass = \"train_step\"");
    if (trainer.model.precision.loss_scaling)
      refuse("cannot have the loss scale of fp16, which has to see all gradients first; expected another precision");
    if (trainer.update_beside_backward && trainer.model.side_lane)
      refuse("takes the second stream for itself; expected side_lane = false");
    if (!c.prepares()) refuse("needs prepared steps; expected measure.prepare = true");
    if (trainer.update_in_products && trainer.optimizer.name != "adamw")
      refuse("is AdamW's; expected optimizer = \"adamw\", or update = \"after_backward\"");
  }
  if (trainer.optimizer.name == "muon" && !trainer.train_step)
    throw Error(ASSAY_INVALID_ARGUMENT,
                "optimizer = \"muon\" is of a training step; expected pass = \"train_step\", or optimizer left out");
  const auto left = c.get<std::int32_t>("leave_multiprocessors");
  if (left > 0 && !trainer.update_beside_backward)
    throw Error(
        ASSAY_INVALID_ARGUMENT,
        "leave_multiprocessors needs an update beside backward; set update = \"beside_backward\", or leave it out");
  return left;
}

}  // namespace assay::models
