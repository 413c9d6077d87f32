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
  // Opens, finds `assay_entry_v1`, negotiates. Throws PluginError. No plugin code runs beyond static constructors.
  static std::shared_ptr<const PluginLibrary> open(const std::filesystem::path& file);
  // The same with copies of the file and of the libraries that it finds by its own place: what is written to them, or
  // moved over them, changes nothing of what is open.
  static std::shared_ptr<const PluginLibrary> open_copy(const std::filesystem::path& file);

  // Of what was opened by open_copy(): the plugin's own, and those of the libraries beside it.
  const LibraryCopy& copy() const { return copies_.front(); }
  std::span<const LibraryCopy> copies_beside() const { return std::span(copies_).subspan(1); }
  const assay_entry& entry() const { return *entry_; }
  const std::filesystem::path& file() const { return file_; }
  // By id; with an empty id the only workload. Throws PluginError that lists what there is.
  const assay_workload& workload(const std::string& id) const;
  std::vector<std::string> workload_ids() const;

  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;
  ~PluginLibrary();

 private:
  struct Handle;
  PluginLibrary(std::filesystem::path file, std::vector<LibraryCopy> copies, std::unique_ptr<Handle> handle,
                const assay_entry* entry);
  static std::shared_ptr<const PluginLibrary> open(std::filesystem::path file, std::vector<LibraryCopy> copies);

  std::filesystem::path file_;
  std::vector<LibraryCopy> copies_;
  std::unique_ptr<Handle> handle_;
  const assay_entry* entry_;
};

}  // namespace assay::host::plugin
