// Runs a function in a child process that may crash, hang or exit in it: its texts come back, and how it ended.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::host {

// The child's function sends texts to its parent by this. Each is sent at once: what was sent before a crash has
// arrived.
using Send = std::function<void(std::string_view)>;

struct ChildOptions {
  std::chrono::milliseconds deadline{10'000};  // of all of it
  bool deadline_of_each_text = false;          // or from one text to the next, and to its end
  // The child ends as a program does, with the destructors of its libraries; otherwise at once.
  bool runs_exit_handlers = false;
  int output = -1;  // where standard output and error go, if not nowhere
};

struct ChildEnd {
  std::string text;          // that it sent, at most 64 MiB
  bool is_complete = false;  // the function has returned
  bool is_overdue = false;
  int wait_status = 0;  // as waitpid gives it

  bool is_clean() const { return is_complete && !is_overdue && wait_status == 0; }
  int signal() const;  // that ended it; 0: it exited
  // "signal 11 (Segmentation fault)", "exit code 3".
  std::string how() const;
};

// Forks. The child has no terminal, leaves no core file, and ends with this process; what it has started ends with it.
// Call it while this process has one thread. Throws std::system_error where there can be no child.
ChildEnd run_in_child(const std::function<void(const Send&)>& function, const ChildOptions& options = {});
// Several of them side by side, at least one. Their ends in the order of the functions. All are forked before the first
// thread starts that reads what they send.
std::vector<ChildEnd> run_in_children(const std::vector<std::function<void(const Send&)>>& functions,
                                      const ChildOptions& options = {});

}  // namespace assay::host
