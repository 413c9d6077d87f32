#include "worker/device_probe.hpp"

#include <array>

#include "plugin/search.hpp"
#include "worker/findings.hpp"
#include "worker/loaded_libraries.hpp"

namespace assay::host::worker {
namespace {

FoundDevice refused(record::Status status, const char* reason, const std::string& cause = "") {
  FoundDevice answer;
  answer.status = status;
  answer.reason = reason;
  answer.cause = cause;
  return answer;
}

}  // namespace

FoundDevice probe_device(const std::string& kind) {
  try {
    const plugin::OpenDevice device(plugin::find_device(kind), 0);
    FoundDevice answer;
    device.check(device.api().count(&answer.count), "counting devices");
    answer.status = record::Status::ok;
    answer.device = device_of(device.api(), 0, device.info());
    const std::array<const void*, 1> recorded_as_file{reinterpret_cast<const void*>(device.api().open)};
    answer.libraries = loaded_libraries(recorded_as_file);
    return answer;
  } catch (const plugin::DeviceError& e) {
    return refused(e.status() == ASSAY_UNSUPPORTED ? record::Status::unsupported : record::Status::failed, e.what(),
                   e.cause());
  } catch (const plugin::PluginError& e) {
    return refused(record::Status::unsupported, e.what());
  }
}

}  // namespace assay::host::worker
