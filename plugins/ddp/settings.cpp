#include "settings.hpp"

namespace ddp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::models::decoder_trainer_config(c)),
      strategy(c.choice("strategy", assay::parallel::strategies)),
      communication(c) {}

}  // namespace ddp
