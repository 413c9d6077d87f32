// All that a plugin declares, as data: what the host knows of a plugin without having opened it.
#pragma once
#include <assay/abi.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/schema.hpp"

namespace assay::host::plugin {

struct PluginTables {
  std::string id, version, build;
  std::uint32_t abi_major = 0, abi_minor = 0;  // which it was compiled against
  std::uint32_t min_host_minor = 0;
  std::vector<WorkloadSchema> workloads;

  std::string abi() const { return std::to_string(abi_major) + '.' + std::to_string(abi_minor); }  // "1.3"
  std::string min_host() const { return std::to_string(abi_major) + '.' + std::to_string(min_host_minor); }
  // By id; with an empty id the only workload. Throws PluginError that names `file` and lists what there is.
  const WorkloadSchema& workload(const std::filesystem::path& file, const std::string& id) const;
  std::vector<std::string> workload_ids() const;
};

// Call only after check_entry.
PluginTables copy_tables(const assay_entry& entry);

// A text of one line, and back, to the bit. Throws PluginError for any other text.
std::string to_line(const PluginTables& tables);
PluginTables tables_from_line(std::string_view line);

}  // namespace assay::host::plugin
