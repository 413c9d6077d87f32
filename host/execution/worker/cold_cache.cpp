#include "worker/cold_cache.hpp"

#include <fmt/format.h>

namespace assay::host::worker {

ColdCache::ColdCache(const plugin::OpenDevice& device)
    : device_(device), cache_(static_cast<const assay_cache*>(device.api().get_extension(ASSAY_EXT_CACHE))) {
  if (!cache_ || !ASSAY_HAS(cache_, assay_cache, flush))
    throw plugin::DeviceError(ASSAY_UNSUPPORTED,
                              fmt::format("[measure] cold_cache = true, but the backend of device '{}' does not offer "
                                          "{}; leave it out, or use a backend that does",
                                          device.api().kind, ASSAY_EXT_CACHE));
}

void ColdCache::flush() const {
  device_.check(cache_->flush(device_.handle(), device_.stream()), "flushing the caches");
}

}  // namespace assay::host::worker
