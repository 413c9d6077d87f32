#include "launch/reap.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "launch/process.hpp"

namespace assay::host::launch {
namespace {

pid_t parent_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  // The name may hold blanks and brackets: what follows its last bracket is "state ppid".
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return 0;
  pid_t parent = 0;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

bool has_tag(pid_t pid, const std::string& entry) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/environ");
  for (std::string found; std::getline(in, found, '\0');)
    if (found == entry) return true;
  return false;
}

// The children of every thread of this process. Falls back to all of /proc on a kernel built without children lists.
std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  std::error_code error;
  bool listed = false;
  for (std::filesystem::directory_iterator i("/proc/self/task", error), end; !error && i != end; i.increment(error)) {
    std::ifstream in(i->path() / "children");
    listed = listed || in.good();
    for (pid_t pid = 0; in >> pid;) children.push_back(pid);
  }
  if (listed) return children;
  const pid_t self = getpid();
  for (std::filesystem::directory_iterator i("/proc", error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename();
    pid_t pid = 0;
    const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure == std::errc() && stop == name.data() + name.size() && parent_of(pid) == self) children.push_back(pid);
  }
  return children;
}

std::vector<pid_t> tagged_children(const std::string& tag) {
  const std::string entry = std::string(worker_tag_variable) + "=" + tag;
  std::vector<pid_t> found = children_of_this_process();
  std::erase_if(found, [&](pid_t pid) { return !has_tag(pid, entry); });
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
