#include "settings.hpp"

namespace fsdp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)), reshard(c.get<bool>("reshard")), collectives(c) {}

}  // namespace fsdp
