#include "settings.hpp"

namespace decoder {

Settings::Settings(const assay::Case& c) : trainer(assay::train::decoder_trainer_config(c)) {
  const auto pass_name = c.get<std::string_view>("pass");
  pass = pass_name == "forward"            ? Pass::forward
         : pass_name == "forward_backward" ? Pass::forward_backward
                                           : Pass::train_step;
  dump_file = c.get<std::string>("dump");
  assay::train::DecoderConfig& model = trainer.model;
  model.fused = c.get<std::string_view>("execution") == "graph";
  model.backward = pass != Pass::forward;
  model.checkpointing = model.backward && model.checkpointing;
  model.keep_logits = !dump_file.empty();
  model.side_lane = c.get<bool>("side_lane");
  trainer.rank = 0, trainer.ranks = 1;  // ranks do not communicate: each takes the whole batch
  trainer.train_step = pass == Pass::train_step;
  trainer.weights_file = c.get<std::string>("weights");
  trainer.inputs_file = c.get<std::string>("inputs");
}

}  // namespace decoder
