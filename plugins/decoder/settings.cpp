#include "settings.hpp"

#include <string>

namespace decoder {

Settings::Settings(const assay::Case& c) : trainer(assay::models::decoder_trainer_config(c)) {
  pass = c.choice("pass", passes);
  dump_file = c.get<std::string>("dump");
  assay::models::DecoderConfig& model = trainer.model;
  model.fused = assay::workload::is_graph(c);
  model.backward = pass != Pass::forward;
  model.checkpointing = model.backward && model.checkpointing;
  model.keep_logits = !dump_file.empty();
  model.side_lane = c.get<bool>("side_lane");
  model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  const auto of_fused = [&](const char* setting, bool set) {
    if (set && !model.fused)
      throw assay::Error(ASSAY_INVALID_ARGUMENT, std::string(setting) +
                                                     " is of the fused operations, and execution = \"eager\" has none; "
                                                     "leave it out, or set execution = \"graph\"");
  };
  of_fused("keep_outputs", model.keep_outputs);
  of_fused("side_lane", model.side_lane);
  of_fused("residual_add = \"product\"", model.residual_in_products);
  if (c.choice("moments", moments) == Moments::bf16) {
    if (trainer.optimizer.name != "adamw" || pass != Pass::train_step)
      throw assay::Error(ASSAY_INVALID_ARGUMENT,
                         "moments = \"bf16\" is of AdamW in a training step; expected optimizer = \"adamw\" and pass = "
                         "\"train_step\", or leave it out");
    model.precision.state = assay::compute::DType::bf16;
  }
  trainer.update_beside_backward = c.choice("update", updates) == Update::beside_backward;
  if (trainer.update_beside_backward) {
    const auto refuse = [](const char* why) {
      throw assay::Error(ASSAY_INVALID_ARGUMENT, std::string("update = \"beside_backward\" ") + why);
    };
    if (pass != Pass::train_step) refuse("needs a training step; expected pass = \"train_step\"");
    if (model.precision.loss_scaling)
      refuse("cannot have the loss scale of fp16, which has to see all gradients first; expected another precision");
    if (model.side_lane) refuse("takes the second stream for itself; expected side_lane = false");
    if (!c.prepares()) refuse("needs prepared steps; expected measure.prepare = true");
  }
  left_multiprocessors = c.get<std::int32_t>("leave_multiprocessors");
  if (left_multiprocessors > 0 && !trainer.update_beside_backward)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "leave_multiprocessors leaves them to an update beside backward, and there is none; leave it "
                       "out, or set update = \"beside_backward\"");
  trainer.data_rank = 0, trainer.data_ranks = 1;  // ranks do not communicate: each takes the whole batch
  trainer.train_step = pass == Pass::train_step;
  trainer.weights_file = c.get<std::string>("weights");
  trainer.inputs_file = c.get<std::string>("inputs");
}

}  // namespace decoder
