// A temporary folder, which goes with its object.
#pragma once
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "common/files.hpp"

namespace assay::host::run {

// For the log of the process that opens the device.
class ScratchFolder {
 public:
  ScratchFolder() : path_((std::filesystem::temp_directory_path() / "assay-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) throw_storage_error("create the temporary folder", path_, errno);
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::filesystem::path path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace assay::host::run
