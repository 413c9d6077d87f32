#include "worker/rank_kind.hpp"

#include <fmt/format.h>

namespace assay::host::worker {

void tell_rank_kind(const CaseSpec& spec, const plugin::WorkloadSchema& schema, std::uint32_t abi_minor,
                    record::CaseResult& result) {
  const std::int32_t count = spec.ranks.count;
  if (count <= 1 || schema.ranks == plugin::RanksAre::cooperating) return;
  if (spec.values.run.copies) {
    result.copies = count;
    result.note(
        fmt::format("{} independent copies, one a rank, that do the same work side by side: rates are those of "
                    "one copy",
                    count));
  } else if (schema.ranks == plugin::RanksAre::unsaid) {
    result.note(
        fmt::format("the plugin was built for ABI 1.{}, which cannot say whether ranks work together. If they do not, "
                    "rates count the same work {} times: build it with this SDK, or set run.copies = true",
                    abi_minor, count));
  }
}

}  // namespace assay::host::worker
