#include "settings.hpp"

namespace sharded_optimizer {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)),
      variant(c.choice("variant", variants)),
      graph(assay::workload::is_graph(c)),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      communication(c) {
  trainer.model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  trainer.arena_multiple = arena_multiple(variant, c.rank_count());
}

}  // namespace sharded_optimizer
