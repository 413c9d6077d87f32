// Opens the compute backend of the case's device.
#pragma once
#include <assay/compute/backend.hpp>

#include <memory>
#include <string>

namespace assay::workload {

// The compute backend of the case's device, on the launch's stream. Throws assay::Error(UNSUPPORTED) when the device
// has none, or one of another release.
inline std::unique_ptr<compute::Backend> open_backend(const Host& host, const Launch& launch) {
  const auto* access = host.extension<assay_device_access>(ASSAY_EXT_DEVICE);
  if (!access) throw Error(ASSAY_UNSUPPORTED, "the host does not offer " ASSAY_EXT_DEVICE);
  const auto* factory = static_cast<const compute::BackendFactory*>(access->api->get_extension("assay.compute/1"));
  if (!factory)
    throw Error(ASSAY_UNSUPPORTED, std::string("device '") + access->api->kind + "' offers no compute operations");
  if (const std::string difference =
          compute::interface_difference(compute::interface_id, factory->interface_id, "the device's backend");
      !difference.empty())
    throw Error(ASSAY_UNSUPPORTED, difference);
  return std::unique_ptr<compute::Backend>(factory->create(access->device, launch.stream()));
}

}  // namespace assay::workload
