#include "ab/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>

#include "common/fd.hpp"
#include "launch/launch_error.hpp"

namespace assay::host::ab {
namespace {

constexpr std::size_t kept_bytes = 8192;
constexpr int signal_period_ms = 100;

std::vector<std::string> entries_with(const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> entries;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(more.begin(), more.end(), [name](const auto& set) { return set.first == name; }))
      entries.emplace_back(text);
  }
  for (const auto& [name, value] : more) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Starts it with both outputs at `output`. A separate process group: an interrupt of the terminal reaches it once, by
// way of this process. Returns 0 or the error.
int start(const std::vector<std::string>& command, const std::vector<std::string>& environment, const Fd& output,
          pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, output.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawnp(&pid, command.at(0).c_str(), &actions, &attributes, pointers_to(command).data(),
                                    pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

// Until the other end is closed, which is when the process has ended. Signals of this process go on to it.
void follow(const Fd& output, pid_t pid, const launch::InterruptHandler& interrupts, std::string& said) {
  int passed_on = 0;
  for (;;) {
    for (; passed_on < interrupts.count()->load(); ++passed_on) ::kill(-pid, SIGINT);
    // After the first signal the handler's descriptor stays readable, with nothing new.
    std::array<pollfd, 2> watched{{{output.get(), POLLIN, 0}, {passed_on > 0 ? -1 : interrupts.wake_fd(), POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), passed_on > 0 ? signal_period_ms : -1) <= 0) continue;
    if (watched[0].revents == 0) continue;
    std::array<char, 4096> block;
    const ssize_t n = ::read(output.get(), block.data(), block.size());
    if (n == 0 || (n < 0 && errno != EINTR)) return;
    if (n < 0) continue;
    said.append(block.data(), static_cast<std::size_t>(n));
    if (said.size() > kept_bytes) said.erase(0, said.size() - kept_bytes);
  }
}

}  // namespace

ChildEnd ChildRunner::run(const std::vector<std::string>& command,
                          const std::vector<std::pair<std::string, std::string>>& environment) const {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw launch::LaunchError::from_errno("cannot create a pipe");
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  pid_t pid = 0;
  const int failed = start(command, entries_with(environment), write_end, pid);
  write_end.reset();
  if (failed != 0) return {127, fmt::format("{}: {}", command.at(0), std::generic_category().message(failed))};
  ChildEnd end;
  follow(read_end, pid, interrupts_, end.said);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (!end.said.empty() && end.said.back() == '\n') end.said.pop_back();
  return end;
}

}  // namespace assay::host::ab
