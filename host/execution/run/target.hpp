// The workload that a run measures, and the plugin that it comes from.
#pragma once
#include <filesystem>
#include <string>

#include "plugin/search.hpp"

namespace assay::host::run {

struct RunTarget {
  plugin::FoundWorkload found;  // with the copies that workers open
  plugin::WorkloadSchema schema;
  std::string plugin_id, plugin_version, plugin_build, plugin_abi;
  std::filesystem::path plugin_file;  // absolute
  std::string file_hash;              // SHA-256 of the copy
};

RunTarget open_target(plugin::FoundWorkload found);

}  // namespace assay::host::run
