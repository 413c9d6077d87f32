#include "run/target.hpp"

namespace assay::host::run {

RunTarget open_target(plugin::FoundWorkload found) {
  RunTarget target;
  target.schema = found.schema;
  target.plugin_id = found.tables.id;
  target.plugin_version = found.tables.version;
  target.plugin_build = found.tables.build;
  target.plugin_abi = found.tables.abi();
  target.plugin_file = found.file;
  target.file_hash = found.copies.front().sha256();
  target.found = std::move(found);
  return target;
}

}  // namespace assay::host::run
