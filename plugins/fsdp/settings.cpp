#include "settings.hpp"

namespace fsdp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)),
      reshard(c.get<bool>("reshard")),
      graph(assay::workload::is_graph(c)),
      left_multiprocessors(c.get<std::int32_t>("leave_multiprocessors")),
      collectives(c) {}

}  // namespace fsdp
