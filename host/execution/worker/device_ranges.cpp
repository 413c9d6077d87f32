#include "worker/device_ranges.hpp"

namespace assay::host::worker {

DeviceRanges::~DeviceRanges() {
  while (open_ > 0) end();
}

void DeviceRanges::begin(const char* name) {
  device_.api().range_push(device_.handle(), name);
  ++open_;
}

void DeviceRanges::end() {
  device_.api().range_pop(device_.handle());
  --open_;
}

}  // namespace assay::host::worker
