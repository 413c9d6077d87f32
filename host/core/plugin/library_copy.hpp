// The bytes of a shared library as they were when a run began, whatever becomes of its file.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/fd.hpp"

namespace assay::host::plugin {

class LibraryCopy {
 public:
  // Reads the file once. Throws PluginError where it cannot be read, or is being written meanwhile.
  static LibraryCopy take(const std::filesystem::path& file);

  const std::filesystem::path& file() const { return file_; }  // which it is a copy of
  const std::string& sha256() const { return sha256_; }
  // By this name this process opens the copy. Libraries stay loaded, and a name must not come to mean another copy
  // then: from here on the copy stays in memory for the life of the process.
  std::filesystem::path name_to_open() const;
  // Writes the copy to a separate file, which may be executed but not written, in one step: nobody finds half of it.
  // Throws StorageError.
  void write_to(const std::filesystem::path& path) const;

 private:
  struct Memory;  // a sealed memory file
  LibraryCopy(std::filesystem::path file, std::shared_ptr<Memory> memory, std::string sha256)
      : file_(std::move(file)), memory_(std::move(memory)), sha256_(std::move(sha256)) {}
  std::filesystem::path file_;
  std::shared_ptr<Memory> memory_;
  std::string sha256_;
};

// The libraries that `file` finds by its own place: those of its needs that lie where its run path says $ORIGIN, and
// what they need in turn, after them. A copy in another place would not find them. None where the file is no library of
// this machine's kind.
std::vector<std::filesystem::path> libraries_beside(const std::filesystem::path& file);

// Opens a library and leaves it open, so that the loader has it when it opens what needs it. One that cannot be opened
// is left to the words about what does.
void keep_open(const std::filesystem::path& library);

}  // namespace assay::host::plugin
