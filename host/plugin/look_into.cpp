#include "plugin/look_into.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <system_error>

#include "common/fd.hpp"
#include "common/files.hpp"
#include "plugin/plugin_library.hpp"

namespace assay::host::plugin {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds longest_look{10};

// The answer is one of these, text, and a NUL. Without the NUL its end would show by the pipe's alone, which whatever
// the plugin has started may hold open.
constexpr char has_workloads = '+';
constexpr char has_problem = '-';

std::string contents_as_text(const std::filesystem::path& file) {
  try {
    return fmt::format("{}{}", has_workloads, fmt::join(PluginLibrary::open(file)->workload_ids(), "\n"));
  } catch (const std::exception& e) {
    return fmt::format("{}{}", has_problem, e.what());
  }
}

[[noreturn]] void answer(const std::filesystem::path& file, int to, pid_t host) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != host) _exit(1);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC); nowhere >= 0)
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, fd);
  const std::string text = contents_as_text(file);
  write_all(to, std::string_view(text.c_str(), text.size() + 1));
  _exit(0);
}

// Nothing when the pipe ends, or the deadline comes, before the whole answer is there.
std::optional<std::string> read_answer(int from, Clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> block;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd readable{from, POLLIN, 0};
    const int ready = poll(&readable, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready <= 0) continue;
    const ssize_t n = read(from, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    text.append(block.data(), static_cast<std::size_t>(n));
    if (text.back() != '\0') continue;
    text.pop_back();
    return text;
  }
}

std::string end_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

PluginContents look_into(const std::filesystem::path& file) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return {{}, fmt::format("{}: cannot be looked into: {}", file.string(), std::generic_category().message(errno))};
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t host = getpid();
  const pid_t child = fork();
  if (child == 0) answer(file, to.get(), host);
  if (child < 0)
    return {{}, fmt::format("{}: cannot be looked into: {}", file.string(), std::generic_category().message(errno))};
  to.reset();
  const auto deadline = Clock::now() + longest_look;
  const std::optional<std::string> text = read_answer(from.get(), deadline);
  const bool is_late = !text && Clock::now() >= deadline;
  kill(child, SIGKILL);  // one that is ending by itself keeps its own status
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_late)
    return {{},
            fmt::format("{}: opening it takes longer than {} s; ask its author", file.string(), longest_look.count())};
  if (!text)
    return {{}, fmt::format("{}: opening it ends the process: {}; ask its author", file.string(), end_of(status))};
  if (text->starts_with(has_workloads)) return {lines_of(text->substr(1)), ""};
  return {{}, text->substr(1)};
}

}  // namespace assay::host::plugin
