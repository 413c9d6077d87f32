#include "settings.hpp"

namespace ddp {

Settings::Settings(const assay::Case& c)
    : strategy(strategy_of(c.get<std::string_view>("strategy"))),
      bucket_bytes(c.get<std::size_t>("bucket_mb") << 20),
      comm(c.get<std::string>("comm")) {
  trainer.model = assay::train::decoder_config(c);
  trainer.model.validate();
  trainer.optimizer = assay::train::optimizer_config(c);
  trainer.seed = c.seed();
  trainer.rank = c.rank();
  trainer.ranks = c.rank_count();
  comm_options.max_channels = c.get<std::int32_t>("max_channels");
}

}  // namespace ddp
