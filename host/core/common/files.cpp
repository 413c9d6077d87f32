#include "common/files.hpp"

#include "common/fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <vector>

namespace assay::host {

std::string storage_remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT: return "free some space there, or choose another folder with --output DIR";
    case EFBIG: return "raise the limit on file size (ulimit -f), or choose another folder with --output DIR";
    case EACCES:
    case EPERM:
    case EROFS: return "choose a folder that this user may write to with --output DIR";
    case ENOTDIR:
    case EEXIST: return "a file stands where a folder is expected: move it away, or choose another with --output DIR";
    case ENAMETOOLONG: return "choose a shorter experiment name, or another folder with --output DIR";
    case EMFILE:
    case ENFILE: return "raise the limit on open files (ulimit -n)";
    default: return "check the disk, or choose another folder with --output DIR";
  }
}

void throw_storage_error(std::string_view action, const std::filesystem::path& path, int error_number) {
  throw StorageError(fmt::format("cannot {} {}: {}; {}", action, path.string(),
                                 std::generic_category().message(error_number), storage_remedy(error_number)));
}

WriteOutcome write_all(int fd, std::string_view text) noexcept {
  WriteOutcome outcome;
  while (outcome.written_bytes < text.size()) {
    const ssize_t n = ::write(fd, text.data() + outcome.written_bytes, text.size() - outcome.written_bytes);
    if (n > 0) {
      outcome.written_bytes += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      outcome.error_number = n == 0 ? EIO : errno;
      break;
    }
  }
  return outcome;
}

namespace {

// Both say whether the file or folder has what was written before; fdatasync leaves out what only records when.
std::atomic<FlushCall> flush_call{nullptr};
int flush_data(int fd) {
  const FlushCall call = flush_call.load();
  return call ? call(fd) : ::fdatasync(fd);
}
int flush_all(int fd) {
  const FlushCall call = flush_call.load();
  return call ? call(fd) : ::fsync(fd);
}

struct TemporaryFile {
  std::filesystem::path path;
  Fd fd;
};

// A new file beside `path`: never one that is there already, and never through a link, by whomever it was put there.
// Without an open one errno says why.
TemporaryFile temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> count{0};
  constexpr int tries = 100;
  for (int i = 0; i < tries; ++i) {
    TemporaryFile file;
    file.path = path.parent_path() / fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), count++);
    file.fd = Fd(::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (file.fd || errno != EEXIST) return file;
  }
  return {};
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

void set_flush_call(FlushCall call) { flush_call.store(call); }

int try_writing(const std::filesystem::path& path) {
  const TemporaryFile file = temporary_beside(path);
  if (!file.fd) return errno;
  ::unlink(file.path.c_str());
  return 0;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text, Durable durable) {
  TemporaryFile file = temporary_beside(path);
  if (!file.fd) throw_storage_error("write", path, errno);
  int error_number = write_all(file.fd.get(), text).error_number;
  if (error_number == 0 && durable == Durable::yes && flush_data(file.fd.get()) != 0) error_number = errno;
  file.fd.reset();
  if (error_number == 0 && ::rename(file.path.c_str(), path.c_str()) != 0) error_number = errno;
  if (error_number != 0) {
    ::unlink(file.path.c_str());
    throw_storage_error(fmt::format("write {} bytes to", text.size()), path, error_number);
  }
  if (durable == Durable::yes) flush_name(path);
}

void flush_to_disk(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || flush_data(file.get()) != 0) throw_storage_error("flush", path, errno);
}

namespace {

// 0, or the errno.
int try_flushing_folder(const std::filesystem::path& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return errno == EACCES || errno == EPERM ? 0 : errno;  // one may write to a folder that one may not read
  if (flush_all(fd.get()) == 0) return 0;
  const bool is_beyond_the_file_system = errno == EINVAL || errno == ENOTSUP || errno == ENOSYS || errno == EROFS;
  return is_beyond_the_file_system ? 0 : errno;
}

}  // namespace

void flush_folder(const std::filesystem::path& folder) {
  if (const int error_number = try_flushing_folder(folder); error_number != 0)
    throw_storage_error("flush the folder", folder, error_number);
}

void flush_name(const std::filesystem::path& path) { flush_folder(folder_of(path)); }

int try_creating_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;  // the innermost first
  std::error_code error;
  for (std::filesystem::path path = folder; !path.empty() && !std::filesystem::exists(path, error) && !error;
       path = path.parent_path()) {
    if (path.has_filename()) missing.push_back(path);
    if (path == path.parent_path()) break;
  }
  std::filesystem::create_directories(folder, error);
  if (error) return error.value();
  for (const std::filesystem::path& made : missing)
    if (const int error_number = try_flushing_folder(folder_of(made)); error_number != 0) return error_number;
  return 0;
}

void create_folders(const std::filesystem::path& folder, std::string_view what) {
  if (const int error_number = try_creating_folders(folder); error_number != 0)
    throw_storage_error(what, folder, error_number);
}

namespace {

enum class Kind { any, regular };

std::string read_whole(const std::filesystem::path& path, Kind kind) {
  // A pipe is opened without waiting for its writer where it is then refused.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (kind == Kind::regular ? O_NONBLOCK : 0)));
  if (!file)
    throw StorageError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
  std::string text;
  struct stat info {};
  const bool is_regular = ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  if (kind == Kind::regular && !is_regular && !S_ISDIR(info.st_mode))
    throw StorageError(
        fmt::format("cannot read {}: it is a pipe, a socket or a device; expected a file", path.string()));
  if (is_regular) text.reserve(static_cast<std::size_t>(info.st_size));
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n > 0) {
      text.append(block.data(), static_cast<std::size_t>(n));
    } else if (n == 0) {
      return text;
    } else if (errno != EINTR) {
      throw StorageError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
    }
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path) { return read_whole(path, Kind::any); }
std::string read_regular_file(const std::filesystem::path& path) { return read_whole(path, Kind::regular); }

std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return std::nullopt;
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

std::optional<std::string> low_space_note(const std::filesystem::path& path, std::uint64_t wanted_bytes) {
  const std::optional<std::uint64_t> free = free_bytes(path);
  if (!free || *free >= wanted_bytes) return std::nullopt;
  return fmt::format("only {:.1f} MiB are free for {}: a long run may not fit; {}",
                     static_cast<double>(*free) / (1 << 20), path.string(), storage_remedy(ENOSPC));
}

}  // namespace assay::host
