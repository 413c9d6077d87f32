#include "settings.hpp"

namespace fsdp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)),
      blocks{.reshard = c.get<bool>("reshard"),
             .micro_batches = c.get<std::int64_t>("accumulation_steps"),
             .reduce_every_micro_batch = c.get<bool>("sync_every_micro_batch")},
      graph(assay::workload::is_graph(c)),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      collectives(c) {
  trainer.model.accumulation_steps = blocks.micro_batches;
  if (!blocks.reduce_every_micro_batch && blocks.micro_batches == 1)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "sync_every_micro_batch = false is of steps of several micro-batches; expected "
                       "accumulation_steps of at least 2, or leave it out");
}

}  // namespace fsdp
