// Where plugins and device backends are looked for.
#pragma once
#include "plugin/device_library.hpp"
#include "plugin/plugin_library.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace assay::host::plugin {

// The plugin path, in order: --plugin-path, ASSAY_PLUGIN_PATH (colon-separated), the installed folder beside the host.
std::vector<std::filesystem::path> plugin_folders(const std::vector<std::string>& from_command_line);
// ASSAY_DEVICE_PATH, then the installed folder.
std::vector<std::filesystem::path> device_folders();
// Where the communication backends lie: ASSAY_COMM_PATH, or the installed folder.
std::filesystem::path comm_folder();

struct FoundWorkload {
  std::shared_ptr<const PluginLibrary> library;
  const assay_workload* workload;
};

// `name`: a workload's id ("decoder"), a plugin file's stem ("decoder", or "myplugin:second" for one of several
// workloads), or a path with a slash ("./x.so", "./x.so:second"), relative to `base`. Throws PluginError that says
// where was looked and what the nearest names are. No library but the one that was meant is opened in this process, and
// of that a copy.
FoundWorkload find_workload(const std::string& name, const std::vector<std::filesystem::path>& folders,
                            const std::filesystem::path& base);

struct ListedPlugin {
  std::filesystem::path file;
  std::shared_ptr<const PluginLibrary> library;  // null when it cannot be used
  std::string problem;                           // and then: why
};
std::vector<ListedPlugin> list_plugins(const std::vector<std::filesystem::path>& folders);

// The backend library of that kind. Throws PluginError when there is none.
std::filesystem::path device_file(const std::string& kind);
std::shared_ptr<const DeviceLibrary> find_device(const std::string& kind);  // opens it
std::vector<std::string> installed_device_kinds();                          // by file name; opens nothing

}  // namespace assay::host::plugin
