#include "common/files.hpp"

#include "common/fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

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

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  return path.parent_path() / fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid());
}

}  // namespace

int try_writing(const std::filesystem::path& path) {
  const std::filesystem::path temporary = temporary_beside(path);
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return errno;
  ::unlink(temporary.c_str());
  return 0;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text, Durable durable) {
  const std::filesystem::path temporary = temporary_beside(path);
  int error_number = 0;
  {
    const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) throw_storage_error("write", path, errno);
    error_number = write_all(file.get(), text).error_number;
    if (error_number == 0 && durable == Durable::yes && ::fdatasync(file.get()) != 0) error_number = errno;
  }
  if (error_number == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error_number = errno;
  if (error_number != 0) {
    ::unlink(temporary.c_str());
    throw_storage_error(fmt::format("write {} bytes to", text.size()), path, error_number);
  }
}

void flush_to_disk(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fdatasync(file.get()) != 0) throw_storage_error("flush", path, errno);
}

std::string read_file(const std::filesystem::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    throw StorageError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
  std::string text;
  if (struct stat info{}; ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode))
    text.reserve(static_cast<std::size_t>(info.st_size));
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
