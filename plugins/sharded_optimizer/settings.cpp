#include "settings.hpp"

namespace sharded_optimizer {

Settings::Settings(const assay::Case& c)
    : variant(variant_of(c.get<std::string_view>("variant"))),
      bucket_bytes(c.get<std::size_t>("bucket_mb") << 20),
      comm(c.get<std::string>("comm")),
      comm_options{.max_channels = c.get<std::int32_t>("max_channels")} {
  trainer.model = assay::train::decoder_config(c);
  trainer.model.validate();
  trainer.optimizer = assay::train::optimizer_config(c);
  trainer.seed = c.seed();
  trainer.rank = c.rank();
  trainer.ranks = c.rank_count();
  trainer.arena_multiple = arena_multiple(variant, c.rank_count());
}

}  // namespace sharded_optimizer
