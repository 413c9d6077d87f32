// Is what a plugin exports sound? Everything here reads constant data; no plugin code runs.
#pragma once
#include <assay/abi.h>

#include "plugin/schema.hpp"

#include <stdexcept>
#include <string>

namespace assay::host::plugin {

// A plugin or a device library that cannot be used; the text names the file, what is wrong, and the remedy.
class PluginError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws PluginError with a text that begins with `file`.
void check_entry(const std::string& file, const assay_entry& entry);
// Copies the tables of a workload of a plugin that was compiled against ABI 1.`abi_minor`. Call only after check_entry.
WorkloadSchema copy_schema(const assay_workload& workload, std::uint32_t abi_minor);

}  // namespace assay::host::plugin
