#include "hosts/ssh_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "common/files.hpp"
#include "hosts/host_error.hpp"

namespace assay::host::hosts {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "cannot create a pipe");
    read = Fd(ends[0]), write = Fd(ends[1]);
  }
  Fd read, write;
};

}  // namespace

SshSession::SshSession(const std::vector<std::string>& call) {
  Pipe in, out, err;
  std::vector<char*> argv;
  for (const std::string& word : call) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t standard;
  sigemptyset(&standard);
  sigaddset(&standard, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &standard);
  const int failed = posix_spawnp(&pid_, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == ENOENT)
    throw HostError(
        fmt::format("there is no program '{}' here; install OpenSSH's client (package openssh-client)", call.front()));
  if (failed != 0) throw HostError(fmt::format("{}: {}", call.front(), std::generic_category().message(failed)));
  in_ = std::move(in.write), out_ = std::move(out.read), err_ = std::move(err.read);
  for (const Fd* fd : {&out_, &err_}) fcntl(fd->get(), F_SETFL, O_NONBLOCK);
}

SshSession::~SshSession() {
  close_input();
  if (!code_) {
    kill(pid_, SIGTERM);
    int status = 0;
    for (int i = 0; i < 100; ++i) {
      if (waitpid(pid_, &status, WNOHANG) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(pid_, SIGKILL);
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
}

void SshSession::send(const std::string& line) {
  const std::lock_guard lock(sending_);
  if (in_) write_all(in_.get(), line + "\n");
}

void SshSession::close_input() {
  const std::lock_guard lock(sending_);
  in_.reset();
}

std::vector<int> SshSession::readable_fds() const {
  std::vector<int> fds;
  for (const Fd* fd : {&out_, &err_})
    if (*fd) fds.push_back(fd->get());
  return fds;
}

void SshSession::read_from(Fd& fd, std::string& into) {
  std::array<char, 65536> block;
  while (fd) {
    const ssize_t n = read(fd.get(), block.data(), block.size());
    if (n > 0)
      into.append(block.data(), static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
      fd.reset();
    else if (errno == EAGAIN)
      return;
  }
}

std::vector<std::string> SshSession::take_lines() {
  constexpr std::size_t most_said = std::size_t{64} << 10;
  read_from(err_, said_);
  if (said_.size() > most_said) said_.erase(0, said_.size() - most_said);
  read_from(out_, unfinished_);
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(unfinished_.substr(begin, end - begin));
  unfinished_.erase(0, begin);
  return lines;
}

std::optional<int> SshSession::end_code() {
  if (out_) return std::nullopt;
  int status = 0;
  if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_)
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return code_;
}

void wait_for_any(const std::vector<SshSession*>& sessions, int also, int timeout_ms) {
  std::vector<pollfd> watched;
  for (const SshSession* session : sessions)
    for (const int fd : session->readable_fds()) watched.push_back({fd, POLLIN, 0});
  if (also >= 0) watched.push_back({also, POLLIN, 0});
  poll(watched.data(), watched.size(), timeout_ms);
}

}  // namespace assay::host::hosts
