// Where plugins and device backends are looked for.
#pragma once
#include "plugin/device_library.hpp"
#include "plugin/library_copy.hpp"
#include "plugin/plugin_tables.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::host::plugin {

// The plugin path, in order: --plugin-path, ASSAY_PLUGIN_PATH (colon-separated), the installed folder beside the host.
std::vector<std::filesystem::path> plugin_folders(const std::vector<std::string>& from_command_line);
// ASSAY_DEVICE_PATH, then the installed folder.
std::vector<std::filesystem::path> device_folders();
// Where the communication backends lie: ASSAY_COMM_PATH, or the installed folder.
std::filesystem::path comm_folder();

// A workload that is known by its plugin's tables. The plugin itself is not open in this process.
struct FoundWorkload {
  std::filesystem::path file;
  // As the file was when its tables were read: its own, and after it those of the libraries that it finds by its own
  // place. What is written to them, or moved over them, changes nothing of what was found.
  std::vector<LibraryCopy> copies;
  PluginTables tables;
  WorkloadSchema schema;
};

// `name`: a workload's id ("decoder"), a plugin file's stem ("decoder", or "myplugin:second" for one of several
// workloads), or a path with a slash ("./x.so", "./x.so:second"), relative to `base`. Throws PluginError that says
// where was looked and what the nearest names are. No library is opened in this process. For a name that no file has,
// the tables of every plugin are read, each in a separate process unless they are remembered.
FoundWorkload find_workload(const std::string& name, const std::vector<std::filesystem::path>& folders,
                            const std::filesystem::path& base);

struct ListedPlugin {
  std::filesystem::path file;
  std::optional<PluginTables> tables;  // nothing when it cannot be used
  std::string problem;                 // and then: why
};
std::vector<ListedPlugin> list_plugins(const std::vector<std::filesystem::path>& folders);

// The backend library of that kind. Throws PluginError when there is none.
std::filesystem::path device_file(const std::string& kind);
std::shared_ptr<const DeviceLibrary> find_device(const std::string& kind);  // opens it
std::vector<std::string> installed_device_kinds();                          // by file name; opens nothing

}  // namespace assay::host::plugin
