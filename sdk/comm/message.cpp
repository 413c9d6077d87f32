#include "assay/comm/message.hpp"

#include <assay/plugin.hpp>
#include <string>

namespace assay::comm {

Message plan_message(Collective collective, std::int64_t size_bytes, std::size_t element_bytes, std::int32_t ranks) {
  const auto element = static_cast<std::int64_t>(element_bytes);
  Message m;
  m.larger = size_bytes / element;
  if (has_parts(collective)) {
    m.part = m.larger / ranks;
    m.larger = m.part * ranks;
  }
  m.count = has_parts(collective) ? m.part : m.larger;
  m.bytes = m.larger * element;
  if (m.larger == 0)
    throw assay::Error(ASSAY_INVALID_ARGUMENT,
                       "a message of " + std::to_string(size_bytes) + " bytes holds not one element of " +
                           std::to_string(element) + " bytes" + (has_parts(collective) ? " for each rank" : "") +
                           "; raise size_bytes or size_mb to at least " +
                           std::to_string(has_parts(collective) ? element * ranks : element) + " bytes");
  return m;
}

double algorithm_bandwidth_gbs(std::int64_t bytes, double milliseconds) {
  return static_cast<double>(bytes) / milliseconds * 1e-6;
}

double bus_factor(Collective collective, std::int32_t ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (collective) {
    case Collective::all_reduce: return 2 * others;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all: return others;
    case Collective::broadcast:
    case Collective::send_receive: break;
  }
  return 1;
}

}  // namespace assay::comm
