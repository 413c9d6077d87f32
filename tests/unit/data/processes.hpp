// Processes of a test: each runs a function and ends with its result.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <stdexcept>

namespace assay::data {

// A process that runs `body` and exits with what it returns. Killed and reaped when the test leaves it behind.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : id_(::fork()) {
    if (id_ < 0) throw std::runtime_error("fork failed");
    if (id_ > 0) return;
    int result = 99;
    try {
      result = body();
    } catch (...) {
    }
    ::_exit(result);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (id_ > 0) kill();
  }
  void kill() {
    ::kill(id_, SIGKILL);
    wait();
  }
  int wait() {  // exit code, or minus the signal
    int status = 0;
    ::waitpid(id_, &status, 0);
    id_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t id_;
};

}  // namespace assay::data
