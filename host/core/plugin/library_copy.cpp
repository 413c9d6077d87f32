#include "plugin/library_copy.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "common/files.hpp"
#include "common/sha256.hpp"
#include "plugin/entry_check.hpp"

namespace assay::host::plugin {
namespace {

constexpr int tries = 3;

std::string error_text(int error) { return std::generic_category().message(error); }

bool is_as_before(const struct stat& before, const struct stat& after) {
  return before.st_size == after.st_size && before.st_mtim.tv_sec == after.st_mtim.tv_sec &&
         before.st_mtim.tv_nsec == after.st_mtim.tv_nsec && before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
         before.st_ctim.tv_nsec == after.st_ctim.tv_nsec;
}

// Appends all that can be read from `from` to `to`. Returns 0, or the errno.
int copy_all(int from, int to, Sha256& hash) {
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t n = ::read(from, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return 0;
    const std::string_view bytes(block.data(), static_cast<std::size_t>(n));
    hash.add(bytes);
    if (const int failed = write_all(to, bytes).error_number) return failed;
  }
}

// From the beginning of `from`, wherever it stands. Returns 0, or the errno.
int copy_from(int from, int to) {
  std::array<char, 65536> block;
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(from, block.data(), block.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return 0;
    if (const int failed = write_all(to, {block.data(), static_cast<std::size_t>(n)}).error_number) return failed;
    at += n;
  }
}

}  // namespace

struct LibraryCopy::Memory {
  explicit Memory(Fd file) : fd(std::move(file)) {}
  ~Memory() {
    if (is_kept) fd.release();
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Fd fd;
  bool is_kept = false;
};

LibraryCopy LibraryCopy::take(const std::filesystem::path& file) {
  const auto fail = [&](const std::string& why) {
    return PluginError(fmt::format("{}: {}", file.string(), why), Refusal::file);
  };
  for (int i = 0; i < tries; ++i) {
    const Fd from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!from) throw fail(fmt::format("cannot be read: {}", error_text(errno)));
    Fd memory(::memfd_create(file.filename().c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory) throw fail(fmt::format("cannot be copied into memory: {}", error_text(errno)));
    struct stat before {
    }, after{};
    if (::fstat(from.get(), &before) != 0) throw fail(fmt::format("cannot be read: {}", error_text(errno)));
    Sha256 hash;
    if (const int failed = copy_all(from.get(), memory.get(), hash))
      throw fail(fmt::format("cannot be copied into memory: {}", error_text(failed)));
    if (::fstat(from.get(), &after) != 0 || !is_as_before(before, after)) continue;
    ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    return {file, std::make_shared<Memory>(std::move(memory)), hash.hex()};
  }
  throw fail("it is being written; run assay again when that is done");
}

std::filesystem::path LibraryCopy::name_to_open() const {
  memory_->is_kept = true;
  // By this process's number, where /proc has it under that: a debugger opens the name, too, and to it "self" is
  // itself, whose descriptor of this number may be a pipe that it waits at for ever.
  std::string by_number = fmt::format("/proc/{}/fd/{}", ::getpid(), memory_->fd.get());
  struct stat named {
  }, own{};
  if (::stat(by_number.c_str(), &named) == 0 && ::fstat(memory_->fd.get(), &own) == 0 && named.st_dev == own.st_dev &&
      named.st_ino == own.st_ino)
    return by_number;
  return fmt::format("/proc/self/fd/{}", memory_->fd.get());
}

void LibraryCopy::write_to(const std::filesystem::path& path) const {
  const std::string half = fmt::format("{}.{}.half", path.string(), ::getpid());
  ::unlink(half.c_str());
  Fd to(::open(half.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500));
  if (!to) throw_storage_error("create", path, errno);
  int failed = copy_from(memory_->fd.get(), to.get());
  if (failed == 0 && ::rename(half.c_str(), path.c_str()) != 0) failed = errno;
  if (failed == 0) return;
  ::unlink(half.c_str());
  throw_storage_error("copy a library to", path, failed);
}

void keep_open(const std::filesystem::path& library) { dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

}  // namespace assay::host::plugin
