#include "settings.hpp"

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
  if (c.choice("moments", moments) == Moments::bf16) {
    if (trainer.optimizer.name != "adamw")
      throw assay::Error(ASSAY_INVALID_ARGUMENT,
                         "moments = \"bf16\" is of AdamW, and the optimizer is another; leave it out");
    model.precision.state = assay::compute::DType::bf16;
  }
  trainer.data_rank = 0, trainer.data_ranks = 1;  // ranks do not communicate: each takes the whole batch
  trainer.train_step = pass == Pass::train_step;
  trainer.weights_file = c.get<std::string>("weights");
  trainer.inputs_file = c.get<std::string>("inputs");
}

}  // namespace decoder
