#include "common/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <system_error>

#include "common/fd.hpp"
#include "common/files.hpp"
#include "common/process_tree.hpp"

namespace assay::host {
namespace {

using Clock = std::chrono::steady_clock;

// Sent after all texts. The pipe's end would not do: whatever the child has started may hold it open.
constexpr char end_of_all = '\0';
constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr std::chrono::milliseconds between_looks{20};  // at a child that has not sent all

// Waits for the child, and ends with it whatever it has left behind. Its orphans, even those in another session, come
// to this process, which stands between it and its parent and runs none of the child's code. Ends as the child did. If
// the parent is gone, ends the child, too.
volatile pid_t kept = 0;
[[noreturn]] void keep(pid_t child, pid_t parent) {
  kept = child;
  signal(SIGTERM, [](int) { kill(kept, SIGKILL); });
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  for (;;) {
    for (const pid_t left : descendants_of(getpid(), getpid(), "")) kill(left, SIGKILL);
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0 && errno == ECHILD) break;
    if (ended == 0) poll(nullptr, 0, 1);
  }
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  signal(WTERMSIG(status), SIG_DFL);
  kill(getpid(), WTERMSIG(status));
  _exit(1);
}

[[noreturn]] void live_as_child(const std::function<void(const Send&)>& function, const ChildOptions& options, int to,
                                pid_t parent) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const pid_t keeper = getpid();
  const pid_t child = fork();
  if (child < 0) _exit(1);
  if (child > 0) {
    close(to);
    keep(child, parent);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(1);
  setpgid(0, 0);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDIN_FILENO);
  const int output = options.output >= 0 ? options.output : nowhere;
  if (output >= 0)
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(output, fd);
  // The descriptor stays open: neither the function nor the end of the program is to close it.
  try {
    function([to](std::string_view text) { write_all(to, text); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    _exit(1);
  }
  write_all(to, std::string_view(&end_of_all, 1));
  if (!options.runs_exit_handlers) _exit(0);
  std::exit(0);
}

class Child {
 public:
  Child(pid_t pid, Fd from, const ChildOptions& options)
      : pid_(pid), from_(std::move(from)), options_(options), deadline_(Clock::now() + options.deadline) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!is_gone_) end_all();
  }

  ChildEnd end() {
    ChildEnd end;
    end.is_complete = read_all(end.text);
    while (!look() && Clock::now() < deadline_ && end.text.size() <= most_bytes) poll(nullptr, 0, 1);
    end.is_overdue = !is_gone_;
    end_all();
    end.wait_status = status_;
    return end;
  }

 private:
  // Whether the child has ended by itself.
  bool look() {
    if (is_gone_) return true;
    siginfo_t info{};
    is_gone_ = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
    return is_gone_;
  }

  bool read_all(std::string& text) {
    std::array<char, 4096> block;
    bool was_gone = false;  // before the pipe was looked at
    for (;;) {
      if (Clock::now() >= deadline_ || text.size() > most_bytes) return false;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
      pollfd readable{from_.get(), POLLIN, 0};
      const auto wait = was_gone ? std::chrono::milliseconds(0) : std::min(left, between_looks);
      const int ready = poll(&readable, 1, static_cast<int>(wait.count()));
      if (ready == 0 && was_gone) return false;
      if (ready <= 0) {
        was_gone = look();
        continue;
      }
      const ssize_t n = read(from_.get(), block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      text.append(block.data(), static_cast<std::size_t>(n));
      if (options_.deadline_of_each_text) deadline_ = Clock::now() + options_.deadline;
      if (text.back() != end_of_all) continue;
      text.pop_back();
      return true;
    }
  }

  void end_all() {
    kill(-pid_, SIGSTOP);  // none of them starts another one meanwhile
    for (const pid_t started : descendants_of(pid_, pid_, "")) kill(started, SIGKILL);
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);  // one that has ended keeps its own status
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    is_gone_ = true;
  }

  pid_t pid_;
  Fd from_;
  const ChildOptions options_;
  Clock::time_point deadline_;
  bool is_gone_ = false;
  int status_ = 0;
};

}  // namespace

int ChildEnd::signal() const { return WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0; }

std::string ChildEnd::how() const {
  if (signal() != 0) return fmt::format("signal {} ({})", signal(), strsignal(signal()));
  return fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

ChildEnd run_in_child(const std::function<void(const Send&)>& function, const ChildOptions& options) {
  return std::move(run_in_children({function}, options).front());
}

std::vector<ChildEnd> run_in_children(const std::vector<std::function<void(const Send&)>>& functions,
                                      const ChildOptions& options) {
  std::fflush(nullptr);  // or a child would write it once more
  const pid_t parent = getpid();
  std::vector<std::unique_ptr<Child>> children;
  for (const std::function<void(const Send&)>& function : functions) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "no pipe to a child");
    Fd from(ends[0]), to(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "no child process");
    if (pid == 0) live_as_child(function, options, to.get(), parent);
    to.reset();
    children.push_back(std::make_unique<Child>(pid, std::move(from), options));
  }
  // Read at once: a pipe that nobody empties stops its child.
  std::vector<ChildEnd> ends(children.size());
  std::vector<std::future<ChildEnd>> readers;
  for (std::size_t i = 1; i < children.size(); ++i)
    readers.push_back(std::async(std::launch::async, [child = children[i].get()] { return child->end(); }));
  ends[0] = children[0]->end();
  for (std::size_t i = 1; i < children.size(); ++i) ends[i] = readers[i - 1].get();
  return ends;
}

}  // namespace assay::host
