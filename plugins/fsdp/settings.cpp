#include "settings.hpp"

namespace fsdp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)),
      reshard(c.get<bool>("reshard")),
      graph(c.choice("execution", assay::workload::executions) == assay::workload::Execution::graph),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      collectives(c) {}

}  // namespace fsdp
