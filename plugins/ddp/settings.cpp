#include "settings.hpp"

namespace ddp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::train::decoder_trainer_config(c)),
      strategy(c.choice("strategy", assay::train::strategies)),
      communication(c) {}

}  // namespace ddp
