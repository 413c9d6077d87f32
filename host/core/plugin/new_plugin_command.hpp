// `assay new plugin`: a plugin project outside the tree, which builds and runs as it is.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace assay::host::plugin {

struct NewPluginRequest {
  std::vector<std::string> what;  // "plugin", NAME
  std::string from = "cpu";       // a template
  std::optional<std::string> output;
};

// Writes the project. Returns the exit code. Throws UsageError, StorageError.
int new_plugin(const NewPluginRequest& request);

}  // namespace assay::host::plugin
