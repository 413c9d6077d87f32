// Files as data sets need them: errors that name the file, whole reads and writes, names that appear only when what
// they stand for is on the disk, a lock between processes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace assay::data {

// What the system refused (INTERNAL): "FILE: DOING: the system's words; REMEDY".
[[noreturn]] void fail(const std::filesystem::path& file, const std::string& doing, int error,
                       const std::string& remedy = "");
// What is not as it must be (INVALID_ARGUMENT): "FILE: TEXT".
[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& text);

class File {
 public:
  File() = default;
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File();
  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

File open_to_read(const std::filesystem::path& file);
// Nothing where there is no such file.
std::optional<std::string> read_text(const std::filesystem::path& file);
// All of `size` bytes from `offset` on. A file that ends before is refused.
void read_all(const File& open, const std::filesystem::path& file, void* to, std::size_t size, std::uint64_t offset);
// The same if the system holds all of it in memory. If not, or if that is unknown: false, and the contents of `to` are
// undefined. Waits for no disk, throws nothing.
bool read_if_in_memory(const File& open, void* to, std::size_t size, std::uint64_t offset);
// Asks the system to bring these bytes into memory, without waiting for them; what it makes of that is its own affair.
void fetch_ahead(const File& open, std::size_t size, std::uint64_t offset);

// A file that gets its name from finish() on, when its bytes are on the disk; without finish() nothing of it stays.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path file);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();
  void write(const void* bytes, std::size_t size);
  void finish();

 private:
  std::filesystem::path file_, partial_;
  File open_;
};
// Where NewFile keeps the bytes meanwhile; a killed process leaves it.
std::filesystem::path partial_name(const std::filesystem::path& file);
void write_text(const std::filesystem::path& file, const std::string& text);  // as a NewFile

void sync_folder(const std::filesystem::path& folder);  // names are on the disk, too
void remove_if_there(const std::filesystem::path& file);

// Held by at most one process, until the result is destroyed or the process ends. Calls `waiting` about ten times a
// second while another holds it. Nothing where this process may not write, or the file system knows no locks.
std::optional<File> lock(const std::filesystem::path& file, const std::function<void()>& waiting);

std::string bytes_text(std::uint64_t bytes);  // "32.1 GB (32123456789 bytes)"

}  // namespace assay::data
