#include "worker/device_probe.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plugin/search.hpp"
#include "worker/case_record.hpp"

namespace assay::host {
namespace {

using json = nlohmann::ordered_json;

json probe_kind(const std::string& kind) {
  try {
    const OpenDevice device(find_device(kind), 0);
    std::int32_t count = 0;
    device.check(device.api().count(&count), "counting devices");
    return {{"status", "ok"},
            {"device", device_record(device.api().kind, 0, device.info())},
            {"count", count},
            {"note", ""}};
  } catch (const DeviceError& e) {
    return {{"status", e.status() == ASSAY_UNSUPPORTED ? "unsupported" : "failed"}, {"reason", e.what()}};
  } catch (const PluginError& e) {
    return {{"status", "unsupported"}, {"reason", e.what()}};
  }
}

}  // namespace

json probe_device(const std::string& wanted) {
  if (wanted != "auto") return probe_kind(wanted);
  const std::vector<std::string> kinds = installed_device_kinds();
  std::string note = "no cuda backend is installed";
  if (std::find(kinds.begin(), kinds.end(), "cuda") != kinds.end()) {
    json cuda = probe_kind("cuda");
    if (cuda["status"] == "ok") return cuda;
    note = cuda["reason"].get<std::string>();
  }
  json cpu = probe_kind("cpu");
  if (cpu["status"] == "ok") cpu["note"] = "device = \"auto\" took the cpu: " + note;
  return cpu;
}

}  // namespace assay::host
