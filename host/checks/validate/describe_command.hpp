// `assay describe`: what a workload declares.
#pragma once
#include <string>
#include <vector>

namespace assay::host::validate {

struct DescribeRequest {
  std::string plugin;  // a name on the plugin path, "plugin:workload", or a path
  std::vector<std::string> plugin_path;
  bool json = false;
};

int describe(const DescribeRequest& request);

}  // namespace assay::host::validate
