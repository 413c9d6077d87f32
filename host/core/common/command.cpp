#include "common/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

#include "common/fd.hpp"

namespace assay::host {
namespace {

using Clock = std::chrono::steady_clock;

bool is_kept(std::string_view entry) {
  if (entry.starts_with("SLURM_CONF=") || entry.starts_with("SLURM_CONF_SERVER=")) return true;
  constexpr std::array<std::string_view, 5> dropped{"SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_", "SLURM_"};
  return std::none_of(dropped.begin(), dropped.end(), [entry](auto prefix) { return entry.starts_with(prefix); });
}

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "cannot create a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

enum class End { exited, timed_out, said_too_much };

// Reads both ends until the program has ended and both are closed, or for a moment longer: what it has started may keep
// them open for as long as it likes.
End read_both(const Fd& out, const Fd& err, CommandAnswer& answer, Clock::time_point deadline, pid_t pid, int& status) {
  constexpr std::chrono::milliseconds look{50}, look_at_silent{2}, patience_after_end{500};
  std::array<pollfd, 2> watched{{{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&answer.out, &answer.err};
  std::optional<Clock::time_point> ended;
  while (watched[0].fd >= 0 || watched[1].fd >= 0 || !ended) {
    const Clock::time_point now = Clock::now();
    if (!ended && ::waitpid(pid, &status, WNOHANG) == pid) ended = now;
    if (ended && now - *ended >= patience_after_end) return End::exited;
    if (!ended && now >= deadline) return End::timed_out;
    const bool is_silent = watched[0].fd < 0 && watched[1].fd < 0;
    if (poll(watched.data(), watched.size(), static_cast<int>((is_silent ? look_at_silent : look).count())) <= 0)
      continue;
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i].fd < 0 || watched[i].revents == 0) continue;
      std::array<char, 65536> block;
      const ssize_t n = ::read(watched[i].fd, block.data(), block.size());
      if (n > 0)
        texts[i]->append(block.data(), static_cast<std::size_t>(n));
      else if (n == 0 || errno != EINTR)
        watched[i].fd = -1;
    }
    if (!ended && answer.out.size() + answer.err.size() > most_answer_bytes) return End::said_too_much;
  }
  return End::exited;
}

}  // namespace

std::string CommandAnswer::complaint() const {
  if (timed_out) return "it did not answer in time";
  if (said_too_much) return fmt::format("it said more than {} MiB", most_answer_bytes >> 20);
  // The first line often names what the last one only regrets.
  std::string text;
  std::string_view rest = err;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty() || line.starts_with("Try \"")) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", line);
  }
  constexpr std::size_t readable_length = 400;
  if (text.size() > readable_length) text = text.substr(0, readable_length) + "...";
  return text.empty() ? fmt::format("it ended with {} and said nothing", exit_code) : text;
}

CommandAnswer run_command(const std::vector<std::string>& arguments, std::chrono::milliseconds timeout,
                          const std::vector<std::string>& more) {
  std::vector<char*> argv, envp;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  for (char** entry = ::environ; entry && *entry; ++entry)
    if (is_kept(*entry)) envp.push_back(*entry);
  for (const std::string& entry : more) envp.push_back(const_cast<char*>(entry.c_str()));
  envp.push_back(nullptr);

  Pipe out = make_pipe(), err = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  out.write.reset(), err.write.reset();
  CommandAnswer answer;
  if (failed != 0) {
    answer.exit_code = 127;
    answer.err = fmt::format("{}: {}", arguments[0], std::generic_category().message(failed));
    return answer;
  }
  int status = 0;
  const End end = read_both(out.read, err.read, answer, Clock::now() + timeout, pid, status);
  answer.timed_out = end == End::timed_out, answer.said_too_much = end == End::said_too_much;
  if (end != End::exited) {
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

}  // namespace assay::host
