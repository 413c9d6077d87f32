#include "settings.hpp"

namespace node_check {

Settings::Settings(const assay::Case& c)
    : check(c.choice("check", checks)),
      precision(c.choice("precision", precisions)),
      size(c.get<std::int64_t>("size")),
      bytes(c.get<std::int64_t>("bytes")),
      repeats(c.get<std::int64_t>("repeats")),
      seed(c.seed()),
      pattern(static_cast<std::uint64_t>(c.get<std::int64_t>("pattern"))),
      rank(c.rank()),
      ranks(c.rank_count()) {
  if (rank == ranks - 1) fault = c.choice("fault", faults);
  if (check == CheckOf::all_reduce && ranks == 1)
    throw assay::Error(ASSAY_UNSUPPORTED,
                       "check = \"all_reduce\" is of the links between ranks, and the case has one rank; give it two "
                       "([run] ranks = 2, or \"all\" for one per GPU), or leave the check out");
}

}  // namespace node_check
