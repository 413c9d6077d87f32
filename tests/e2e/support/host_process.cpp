#include "e2e/support/host_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

namespace assay::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{5};

}  // namespace

HostProcess::HostProcess(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                         const std::filesystem::path& output_file,
                         const std::map<std::string, std::string>& variables) {
  std::vector<std::string> texts{ASSAY_EXECUTABLE};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);

  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  setpgid(0, 0);
  const int out = open(output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int in = open("/dev/null", O_RDONLY);
  if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir(folder.c_str()) != 0)
    _exit(126);
  setenv("OMP_NUM_THREADS", "1", 1);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  execv(ASSAY_EXECUTABLE, pointers.data());
  _exit(126);
}

HostProcess::HostProcess(HostProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

HostProcess::~HostProcess() {
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void HostProcess::send(int signal) const { kill(pid_, signal); }

bool HostProcess::has_open(const std::string& file_name) const {
  std::error_code ended;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd", ended)) {
    std::error_code closed;
    if (std::filesystem::read_symlink(entry.path(), closed).filename() == file_name) return true;
  }
  return false;
}

std::optional<HostExit> HostProcess::wait() {
  const auto deadline = Clock::now() + std::chrono::minutes(2);
  while (Clock::now() < deadline) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      HostExit exit;
      if (WIFSIGNALED(status))
        exit.signal = WTERMSIG(status);
      else
        exit.code = WEXITSTATUS(status);
      return exit;
    }
    std::this_thread::sleep_for(look_again);
  }
  return std::nullopt;
}

bool all_descendants_are_gone() {
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  while (Clock::now() < deadline) {
    const pid_t reaped = waitpid(-1, nullptr, WNOHANG);
    if (reaped < 0 && errno == ECHILD) return true;
    if (reaped == 0) std::this_thread::sleep_for(look_again);
  }
  return false;
}

}  // namespace assay::test
