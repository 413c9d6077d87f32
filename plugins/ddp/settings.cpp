#include "settings.hpp"

namespace ddp {

Settings::Settings(const assay::Case& c)
    : trainer(assay::train::decoder_trainer_config(c)),
      strategy(assay::train::strategy_of(c.get<std::string_view>("strategy"))),
      communication(c) {}

}  // namespace ddp
