#include "settings.hpp"

#include <string>

namespace ddp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c, assay::train::WholeMatrixOptimizers::served)),
      strategy(c.choice("strategy", assay::parallel::strategies)),
      graph(assay::workload::is_graph(c)),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      communication(c) {
  trainer.model.accumulation_steps = c.get<std::int64_t>("accumulation_steps");
  const auto refuse = [](const char* setting, const char* why) {
    throw assay::Error(ASSAY_INVALID_ARGUMENT, std::string(setting) + " is of strategies that " + why +
                                                   ", and strategy is another; leave it out");
  };
  using assay::parallel::Strategy;
  const bool buckets = strategy == Strategy::overlap_bucketed;
  if (left_multiprocessors > 0 && !buckets && strategy != Strategy::overlap_individual)
    refuse("leave_multiprocessors", "average beside backward, overlap_individual and overlap_bucketed");
  if (c.get<double>("last_bucket_mb") > 0 && !buckets) refuse("last_bucket_mb", "have buckets, overlap_bucketed");
}

}  // namespace ddp
