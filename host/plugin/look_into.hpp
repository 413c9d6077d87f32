// What a plugin file holds, without opening it in this process.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace assay::host::plugin {

struct PluginContents {
  std::vector<std::string> workload_ids;
  std::string problem;  // why it cannot be used; "": it can
};
// Opens the file in a process of its own, which ends before this returns: what runs when a library is opened may print,
// crash or hang, and a file that is only looked into must not take the host along. What it prints is thrown away.
PluginContents look_into(const std::filesystem::path& file);

}  // namespace assay::host::plugin
