// `assay list`: the plugins and devices that this host finds.
#pragma once
#include <string>
#include <vector>

namespace assay::host::doctor {

struct ListRequest {
  std::vector<std::string> plugin_path;
  bool json = false;
};

int list_plugins_and_devices(const ListRequest& request);

}  // namespace assay::host::doctor
