#include "launch/reap.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "common/process_tree.hpp"
#include "launch/process.hpp"

namespace assay::host::launch {
namespace {

std::vector<pid_t> tagged_children(const std::string& tag) {
  const std::string entry = std::string(worker_tag_variable) + "=" + tag;
  std::vector<pid_t> found = children_of(getpid());
  std::erase_if(found, [&](pid_t pid) { return !has_variable(pid, entry); });
  return found;
}

}  // namespace

void reap_descendants(pid_t group, const std::string& tag, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::vector<pid_t> escaped;
  do {
    int status = 0;
    pid_t reaped = 0;
    while ((reaped = waitpid(-group, &status, WNOHANG)) > 0) {
    }
    // Killing one hands its own children to the host, so the search goes on until it finds none.
    const std::vector<pid_t> found = tagged_children(tag);
    for (const pid_t pid : found) {
      kill(pid, SIGKILL);
      escaped.push_back(pid);
    }
    std::erase_if(escaped, [&](pid_t pid) { return waitpid(pid, &status, WNOHANG) != 0; });
    // reaped < 0: the group has no member left that is a child of the host.
    if (reaped < 0 && found.empty() && escaped.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (std::chrono::steady_clock::now() < deadline);
}

}  // namespace assay::host::launch
