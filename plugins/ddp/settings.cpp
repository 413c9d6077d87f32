#include "settings.hpp"

namespace ddp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)),
      strategy(c.choice("strategy", assay::parallel::strategies)),
      graph(assay::workload::is_graph(c)),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      communication(c) {}

}  // namespace ddp
