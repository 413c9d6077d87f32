// Is what a plugin exports sound? Everything here reads constant data; no plugin code runs.
#pragma once
#include <assay/abi.h>

#include "plugin/schema.hpp"

#include <stdexcept>
#include <string>

namespace assay::host::plugin {

// What of a plugin is not as it has to be, for who asks about each by itself.
enum class Refusal {
  other,
  file,        // is not there, cannot be read, or is no library of this machine's kind
  unresolved,  // needs symbols or libraries that are not there
  symbol,      // does not export the entry
  version,
  sizes,
  texts,
  rows,  // a table that is NULL, counts too many, or has invalid rows
  names,
  values,  // types, defaults, ranges
  presets,
  functions,
  ended,    // opening it ends the process
  overdue,  // opening it does not come to an end
};

// A plugin or a device library that cannot be used; the text names the file, what is wrong, and the remedy.
class PluginError : public std::runtime_error {
 public:
  explicit PluginError(const std::string& text, Refusal why = Refusal::other) : std::runtime_error(text), why_(why) {}
  Refusal why() const { return why_; }

 private:
  Refusal why_;
};

// Throws PluginError with a text that begins with `file`.
void check_entry(const std::string& file, const assay_entry& entry);
// Copies the tables of a workload of a plugin that was compiled against ABI 1.`abi_minor`. Call only after check_entry.
WorkloadSchema copy_schema(const assay_workload& workload, std::uint32_t abi_minor);

}  // namespace assay::host::plugin
