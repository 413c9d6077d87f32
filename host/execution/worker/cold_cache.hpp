// The device's caches, made to forget before each sample: [measure] cold_cache.
#pragma once
#include <assay/cache.h>

#include "plugin/device_library.hpp"

namespace assay::host::worker {

class ColdCache {
 public:
  // Throws DeviceError where the device's backend cannot. `device` outlives this object.
  explicit ColdCache(const plugin::OpenDevice& device);
  void flush() const;  // enqueues

 private:
  const plugin::OpenDevice& device_;
  const assay_cache* cache_;
};

}  // namespace assay::host::worker
