#include "run/target.hpp"

#include <fmt/format.h>

namespace assay::host::run {

RunTarget open_target(plugin::FoundWorkload found) {
  RunTarget target;
  target.schema = plugin::copy_schema(*found.workload, found.library->entry().abi_minor);
  const assay_entry& entry = found.library->entry();
  target.plugin_id = entry.id;
  target.plugin_version = entry.version;
  target.plugin_build = entry.build;
  target.plugin_abi = fmt::format("{}.{}", entry.abi_major, entry.abi_minor);
  target.plugin_file = std::filesystem::absolute(found.library->file()).lexically_normal();
  target.file_hash = found.library->copy().sha256();
  target.found = std::move(found);
  return target;
}

}  // namespace assay::host::run
