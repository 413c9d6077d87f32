#include "settings.hpp"

namespace ddp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)),
      strategy(c.choice("strategy", assay::parallel::strategies)),
      graph(c.choice("execution", assay::workload::executions) == assay::workload::Execution::graph),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      communication(c) {}

}  // namespace ddp
