// One loaded workload plugin. Held by shared_ptr: whatever uses its tables or code keeps it.
#pragma once
#include <assay/abi.h>

#include "plugin/entry_check.hpp"
#include "plugin/library_copy.hpp"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::host::plugin {

class PluginLibrary {
 public:
  // Opens, finds `assay_entry_v1`, negotiates. Throws PluginError. No plugin code runs beyond static constructors, but
  // these do: only a process that is there for the plugin's sake does this, a worker or a child (table_reader.hpp).
  // `copies`: what is opened in place of the file and of the libraries that it finds by its own place, its own first.
  static std::shared_ptr<const PluginLibrary> open(const std::filesystem::path& file,
                                                   std::span<const LibraryCopy> copies = {});

  const assay_entry& entry() const { return *entry_; }
  const std::filesystem::path& file() const { return file_; }
  // By id; with an empty id the only workload. Throws PluginError that lists what there is.
  const assay_workload& workload(const std::string& id) const;

  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;
  ~PluginLibrary();

 private:
  struct Handle;
  PluginLibrary(std::filesystem::path file, std::unique_ptr<Handle> handle, const assay_entry* entry);

  std::filesystem::path file_;
  std::unique_ptr<Handle> handle_;
  const assay_entry* entry_;
};

}  // namespace assay::host::plugin
