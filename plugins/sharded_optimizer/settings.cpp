#include "settings.hpp"

namespace sharded_optimizer {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c, assay::train::WholeMatrixOptimizers::served)),
      variant(c.choice("variant", variants)),
      graph(assay::workload::is_graph(c)),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      communication(c) {
  trainer.model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  shares_matrices = variant != Variant::baseline && trainer.optimizer.name == "muon";
  if (shares_matrices && communication.gathers == assay::parallel::Gathers::copy_engines)
    throw assay::Error(
        ASSAY_UNSUPPORTED,
        "gathers = \"copy_engines\" makes gatherings, and muon's matrices are broadcast by their owners; "
        "expected another value of gathers, or optimizer = \"adamw\"");
  if (!shares_matrices) trainer.arena_multiple = arena_multiple(variant, c.rank_count());
}

}  // namespace sharded_optimizer
