#include "settings.hpp"

#include <algorithm>

namespace all_reduce {

using assay::comm::Collective;
namespace {

// The place of `name` in the table; the host has checked that it is there.
template <class Enum, std::size_t N>
Enum in_order(const std::array<const char*, N>& names, std::string_view name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

constexpr double mib = 1 << 20;

}  // namespace

Settings::Settings(const assay::Case& c)
    : collective_name(c.get<std::string>("collective")),
      backend(c.get<std::string>("backend")),
      reduction_name(c.get<std::string>("reduction")),
      in_place(c.get<bool>("in_place")),
      root(c.get<std::int32_t>("root")),
      rank(c.rank()),
      ranks(c.rank_count()) {
  collective = in_order<Collective>(collective_names, collective_name);
  reduction = in_order<assay::comm::Reduction>(reduction_names, reduction_name);
  dtype = in_order<assay::compute::DType>(dtype_names, c.get<std::string_view>("dtype"));
  options.max_channels = c.get<std::int32_t>("max_channels");
  options.on_compute_stream = c.get<std::string_view>("stream") == "compute";
  if (collective == Collective::broadcast && !in_place)
    throw assay::Error(ASSAY_INVALID_ARGUMENT, "a broadcast has one buffer; leave out in_place = false");
  if (collective == Collective::broadcast && root >= ranks)
    throw assay::Error(ASSAY_INVALID_ARGUMENT, "root = " + std::to_string(root) + ", but the case has " +
                                                   std::to_string(ranks) + " rank(s), which count from 0");
  auto bytes = c.get<std::int64_t>("size_bytes");
  if (bytes == 0) bytes = static_cast<std::int64_t>(c.get<double>("size_mb") * mib);
  message = assay::comm::plan_message(collective, bytes, assay::compute::size_of(dtype), ranks);
}

}  // namespace all_reduce
