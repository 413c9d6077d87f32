#include "worker/chosen_algorithms.hpp"

#include <assay/algorithms.h>
#include <fmt/format.h>

#include <algorithm>

namespace assay::host::worker {

void tell_algorithms(const plugin::OpenDevice& device, record::CaseResult& result) {
  const auto* table = static_cast<const assay_algorithms*>(device.api().get_extension(ASSAY_EXT_ALGORITHMS));
  if (!table || !ASSAY_HAS(table, assay_algorithms, get)) return;
  result.algorithms.clear();
  try {
    std::uint64_t count = 0;
    device.check(table->count(device.handle(), &count), "counting the algorithms chosen");
    const std::uint64_t kept = std::min<std::uint64_t>(count, most_algorithms);
    for (std::uint64_t i = 0; i < kept; ++i) {
      assay_algorithm algorithm{};
      algorithm.struct_size = sizeof algorithm;
      device.check(table->get(device.handle(), i, &algorithm), "asking for an algorithm chosen");
      result.algorithms.emplace_back(algorithm.made_for, algorithm.algorithm);
    }
    if (count > kept) result.note(fmt::format("algorithms: the first {} of {} chosen are in the record", kept, count));
  } catch (const plugin::DeviceError& e) {
    result.note(fmt::format("the algorithms chosen are not known: {}", e.what()));
  }
}

}  // namespace assay::host::worker
