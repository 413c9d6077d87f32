// The workload that a run measures, and the plugin that it comes from.
#pragma once
#include <filesystem>
#include <string>

#include "plugin/search.hpp"

namespace assay::host::run {

struct RunTarget {
  plugin::FoundWorkload found;  // keeps the plugin open
  plugin::WorkloadSchema schema;
  std::string plugin_id, plugin_version, plugin_build;
  std::filesystem::path plugin_file;  // absolute
  std::string file_hash;
};

// Reads the plugin's file once, for its hash. Throws std::system_error when that cannot be done.
RunTarget open_target(plugin::FoundWorkload found);

}  // namespace assay::host::run
