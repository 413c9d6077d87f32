#include "wireup/private_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "common/fd.hpp"

namespace assay::host::wireup {
namespace {

constexpr std::size_t private_text_max = 64 * 1024;

}  // namespace

std::string why_not_private(int fd, const std::filesystem::path& file) {
  struct stat found {};
  if (fstat(fd, &found) != 0)
    return fmt::format("cannot look at {}: {}", file.string(), std::generic_category().message(errno));
  if (!S_ISREG(found.st_mode)) return fmt::format("{} is no ordinary file", file.string());
  if (found.st_uid != geteuid())
    return fmt::format("{} belongs to user {}, but this process runs as user {} and cannot trust it; remove it",
                       file.string(), found.st_uid, geteuid());
  if ((found.st_mode & 077) != 0)
    return fmt::format(
        "{} has the permissions {:04o}: others can read or change the token in it; make a new token, and "
        "keep it in a file that is yours alone (chmod 600)",
        file.string(), found.st_mode & 07777);
  return {};
}

PrivateText read_private_file(const std::filesystem::path& file) {
  // Not blocking: somebody may have put a pipe there.
  const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return {std::nullopt, fmt::format("there is no such file: {}", file.string())};
    if (errno == ELOOP) return {std::nullopt, fmt::format("{} is a link; expected the file itself", file.string())};
    return {std::nullopt, fmt::format("cannot open {}: {}", file.string(), std::generic_category().message(errno))};
  }
  if (std::string problem = why_not_private(fd.get(), file); !problem.empty())
    return {std::nullopt, std::move(problem)};
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t n = read(fd.get(), part.data(), part.size());
    if (n == 0) return {std::move(text), {}};
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return {std::nullopt, fmt::format("cannot read {}: {}", file.string(), std::generic_category().message(errno))};
    text.append(part.data(), static_cast<std::size_t>(n));
    if (text.size() > private_text_max)
      return {std::nullopt, fmt::format("{} has more than {} bytes", file.string(), private_text_max)};
  }
}

}  // namespace assay::host::wireup
