#include "files.hpp"

#include <assay/plugin.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace assay::data {

namespace fs = std::filesystem;

void fail(const fs::path& file, const std::string& doing, int error, const std::string& remedy) {
  throw Error(ASSAY_INTERNAL,
              file.string() + ": " + doing + ": " + std::strerror(error) + (remedy.empty() ? "" : "; " + remedy));
}

void refuse(const fs::path& file, const std::string& text) {
  throw Error(ASSAY_INVALID_ARGUMENT, file.string() + ": " + text);
}

namespace {
[[noreturn]] void fail_to_write(const fs::path& file, const char* doing, int error) {
  if (error == ENOSPC || error == EDQUOT)
    fail(file, doing, error, "remedy: make room, or name a folder on another disk");
  if (error == EFBIG)
    fail(file, doing, error, "remedy: raise the limit of a file's size (ulimit -f), or take more shards");
  fail(file, doing, error);
}
}  // namespace

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File open_to_read(const fs::path& file) {
  File open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (open) return open;
  const int error = errno;
  fail(file, "opening it to read", error,
       error == EMFILE ? "each shard is kept open: raise the limit (ulimit -n), or take fewer shards"
                       : "it must be readable to this user");
}

std::optional<std::string> read_text(const fs::path& file) {
  File open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!open && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!open) fail(file, "opening it to read", errno, "it must be readable to this user");
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(open.descriptor(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(file, "reading", errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

void read_all(const File& open, const fs::path& file, void* to, std::size_t size, std::uint64_t offset) {
  auto* p = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = ::pread(open.descriptor(), p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(file, "reading " + std::to_string(size) + " bytes at " + std::to_string(offset), errno);
    if (n == 0)
      refuse(file, "ends at byte " + std::to_string(offset) + ", " + std::to_string(size) +
                       " bytes before it should; was it cut short while in use?");
    p += n, offset += static_cast<std::uint64_t>(n), size -= static_cast<std::size_t>(n);
  }
}

bool read_if_in_memory(const File& open, void* to, std::size_t size, std::uint64_t offset) {
  const iovec whole{to, size};
  return ::preadv2(open.descriptor(), &whole, 1, static_cast<off_t>(offset), RWF_NOWAIT) == static_cast<ssize_t>(size);
}

void fetch_ahead(const File& open, std::size_t size, std::uint64_t offset) {
  constexpr std::size_t most = 128 << 10;  // of one request, Linux fetches no more than its read-ahead, here the least
  for (std::size_t asked = 0; asked < size; asked += most)
    static_cast<void>(::posix_fadvise(open.descriptor(), static_cast<off_t>(offset + asked),
                                      static_cast<off_t>(std::min(most, size - asked)), POSIX_FADV_WILLNEED));
}

fs::path partial_name(const fs::path& file) {
  fs::path name = file;
  name += ".partial";
  return name;
}

NewFile::NewFile(fs::path file) : file_(std::move(file)), partial_(partial_name(file_)) {
  open_ = File(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!open_) fail(partial_, "opening it to write", errno, "the folder must be writable to this user");
}

NewFile::~NewFile() {
  if (open_) ::unlink(partial_.c_str());
}

void NewFile::write(const void* bytes, std::size_t size) {
  const auto* p = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t n = ::write(open_.descriptor(), p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to_write(partial_, "writing", errno);
    p += n, size -= static_cast<std::size_t>(n);
  }
}

void NewFile::finish() {
  if (::fsync(open_.descriptor()) != 0) fail_to_write(partial_, "flushing it to the disk", errno);
  const int closed = ::close(open_.release());
  const int error = errno;
  if (closed == 0 && ::rename(partial_.c_str(), file_.c_str()) == 0) return;
  const int reason = closed == 0 ? errno : error;
  ::unlink(partial_.c_str());
  fail_to_write(file_, closed == 0 ? "giving it its name" : "closing it", reason);
}

void write_text(const fs::path& file, const std::string& text) {
  NewFile made(file);
  made.write(text.data(), text.size());
  made.finish();
}

void sync_folder(const fs::path& folder) {
  const File open = open_to_read(folder);
  // Some file systems flush no folders, and say so; their names are as durable as they get.
  if (::fsync(open.descriptor()) != 0 && errno != EINVAL && errno != EBADF)
    fail(folder, "flushing it to the disk", errno);
}

void remove_if_there(const fs::path& file) {
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) fail(file, "removing it", errno);
}

std::optional<File> lock(const fs::path& file, const std::function<void()>& waiting) {
  File open(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!open && (errno == EACCES || errno == EPERM || errno == EROFS)) return std::nullopt;
  if (!open) fail(file, "opening it to lock", errno);
  while (::flock(open.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == ENOSYS || errno == ENOTSUP || errno == ENOLCK) return std::nullopt;
    if (errno != EWOULDBLOCK && errno != EINTR) fail(file, "locking", errno);
    waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return open;
}

std::string bytes_text(std::uint64_t bytes) {
  char text[64];
  const char* unit = bytes < 1'000'000'000 ? "MB" : "GB";
  std::snprintf(text, sizeof text, "%.1f %s", static_cast<double>(bytes) / (*unit == 'M' ? 1e6 : 1e9), unit);
  return text + (" (" + std::to_string(bytes) + " bytes)");
}

}  // namespace assay::data
