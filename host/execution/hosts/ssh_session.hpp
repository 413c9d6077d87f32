// One program on a host, reached by one call of ssh: lines in, lines out, and what it says on its standard error.
#pragma once
#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/fd.hpp"

namespace assay::host::hosts {

class SshSession {
 public:
  // Leads a process group: a terminal's Ctrl-C does not reach it. Throws HostError where there is no ssh.
  explicit SshSession(const std::vector<std::string>& call);
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;
  // Closes its input, on which the program there ends, and ends it where it is still there.
  ~SshSession();

  // Thread-safe. A closed connection is noticed by has_ended() and not here.
  void send(const std::string& line);
  void close_input();

  std::vector<int> readable_fds() const;             // of those that are open
  std::vector<std::string> take_lines();             // what has come since; does not wait
  const std::string& said() const { return said_; }  // on its standard error; its last 64 KiB
  std::optional<int> end_code();  // or minus a signal; nothing while it runs, or something of it can be read

 private:
  static void read_from(Fd& fd, std::string& into);

  pid_t pid_ = -1;
  std::mutex sending_;
  Fd in_, out_, err_;
  std::string unfinished_, said_;
  std::optional<int> code_;
};

// Waits until one of the sessions has something to read, `also` (-1: none) is readable, or the time is over.
void wait_for_any(const std::vector<SshSession*>& sessions, int also, int timeout_ms);

}  // namespace assay::host::hosts
